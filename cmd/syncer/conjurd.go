package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/conjurd/home"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/tool"
)

func newConjurdCommand() *cobra.Command {
	var o home.Options
	var values []string
	var kubernetes bool
	cluster := kube.Config{UserAgent: "conjurd/" + version()}
	cmd := &cobra.Command{
		Use:   "conjurd",
		Short: "Serve a Conjur-compatible API, for trials, development and tests",
		Long: `Serves the part of Conjur's API that its clients need, over TLS on loopback.
With --dir, the server stores its data in that folder, encrypted; "conjurd init"
prepares the folder. Without --dir, all data are lost when the server exits.
It prints each refused log-in with the reason. "conjurd env" prints the settings
of a client.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readValues(&o, values, cmd.InOrStdin()); err != nil {
				return err
			}
			if kubernetes {
				client, err := kube.Connect(cluster)
				if err != nil {
					return err
				}
				defer client.Close()
				o.Kubernetes = pods{client}
			}
			ignoreSignals(unix.SIGPIPE) // nobody may read the address
			return home.Serve(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:8443", "the address to listen on; port 0 selects a free port")
	flags.BoolVar(&o.Strict, "strict", false, "disable all extensions that the genuine server lacks")
	flags.StringVar(&o.AuditFile, "audit", "", "a file to which every decision is appended as a line of JSON")
	flags.StringVar(&o.Backup, "backup", "", "a file to which each SIGUSR1 writes a copy of the data, while the server runs")
	flags.BoolVar(&o.AllowPlainHTTP, "plain-http", false, "serve without TLS, on loopback or behind a proxy")
	flags.StringVar(&o.TLSCert, "tls-cert", "", "a PEM certificate (default: issued at startup by the folder's CA)")
	flags.StringVar(&o.TLSKey, "tls-key", "", "the PEM key of --tls-cert")
	flags.StringSliceVar(&o.Hosts, "host", nil, "names and addresses in the certificate that is issued at startup (default: loopback and the address of --addr)")
	flags.BoolVar(&kubernetes, "kubernetes", false, "let Pods of this cluster log in by authn-k8s")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig file for --kubernetes (default: $KUBECONFIG, or the Pod's cluster)")
	flags.DurationVar(&o.UserTokenTTL, "user-token-ttl", 0, "lifetime of a user's access token (default 8m)")
	flags.DurationVar(&o.HostTokenTTL, "host-token-ttl", 0, "lifetime of a host's access token (default 8m)")

	initialize := &cobra.Command{
		Use:   "init --dir DIR",
		Short: "Prepare a folder: account, API key of admin, data key, CA",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readValues(&o, values, cmd.InOrStdin()); err != nil {
				return err
			}
			return terminal.During(cmd.ErrOrStderr(), "Preparing "+o.Dir, func() error { return home.Init(cmd.Context(), o, cmd.OutOrStdout()) })
		},
	}
	rekey := &cobra.Command{
		Use:   "rekey --dir DIR",
		Short: "Encrypt the data in a folder with a new data key, while the server runs",
		Long: `Creates a new data key, encrypts all data with it, and deletes the old key. A server
of the folder may run. You can kill the command at any moment and run it again. Older
backups need the old key: first copy data.key to them.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return home.Rekey(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	for _, c := range []*cobra.Command{cmd, initialize, rekey} {
		c.Flags().StringVar(&o.Dir, "dir", "", "the folder of data, keys and CA")
	}
	_, _ = initialize.MarkFlagRequired("dir"), rekey.MarkFlagRequired("dir")
	for _, c := range []*cobra.Command{cmd, initialize} {
		c.Flags().StringVar(&o.Account, "account", "", "the account (default: the folder's account, or default)")
		c.Flags().StringArrayVar(&o.Policies, "policy", nil, "a policy file to load into root; repeatable")
		c.Flags().StringArrayVar(&values, "values", nil, "a YAML or JSON file of values to set, variable id: text; - for standard input; repeatable")
	}
	cmd.AddCommand(initialize, rekey, newConjurdEnv())
	return cmd
}

func newConjurdEnv() *cobra.Command {
	var dir, url string
	var format *outputFlag
	cmd := &cobra.Command{
		Use:   "env LOGIN",
		Short: "Print the environment of a client, with its API key, for a shell",
		Long: `Prints the settings with which a client logs in to the conjurd of a folder, as
commands for a shell:

    eval "$(syncer conjurd env --dir conjur host/app)"

LOGIN is admin, a user, or a host that --policy created; "host/" may be omitted. The
output contains the API key.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := home.Env(dir, args[0], url)
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				named := map[string]string{}
				for _, s := range settings {
					named[s.Name] = s.Value
				}
				return format.Write(cmd.OutOrStdout(), named)
			}
			for _, s := range settings {
				fmt.Fprintf(cmd.OutOrStdout(), "export %s='%s'\n", s.Name, strings.ReplaceAll(s.Value, "'", `'\''`))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder of data, keys and CA")
	cmd.Flags().StringVar(&url, "url", "", "the address of the server (default: the one at which the folder was last served)")
	_ = cmd.MarkFlagRequired("dir")
	cmd.ValidArgsFunction = completer(completer(loginsOf).first).complete
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// readValues reads the files of values.
func readValues(o *home.Options, files []string, in io.Reader) error {
	for _, file := range files {
		values, err := tool.ReadValues(file, in)
		if err != nil {
			return err
		}
		o.Values = append(o.Values, home.Values{File: file, Value: values})
	}
	return nil
}
