package main

import (
	"io"

	"github.com/spf13/cobra"

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
		Short: "Serve a Conjur-compatible API from this binary, to try, develop and test against",
		Long: `Serves the part of Conjur's API that its clients need, over TLS on loopback.
With --dir it keeps its data, sealed, in that folder, which "conjurd init"
prepares; without it everything is gone at the end.`,
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
			return home.Serve(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:8443", "where to listen; port 0 for a free one")
	flags.BoolVar(&o.Strict, "strict", false, "do nothing that the genuine server would not do")
	flags.StringVar(&o.AuditFile, "audit", "", "a file to append a line of JSON to for every decision")
	flags.StringVar(&o.Backup, "backup", "", "a file to write a copy of the data to at each SIGUSR1, while serving")
	flags.BoolVar(&o.AllowPlainHTTP, "plain-http", false, "serve without TLS; for loopback, or behind a proxy")
	flags.StringVar(&o.TLSCert, "tls-cert", "", "a PEM certificate (default: one made at start by the folder's own CA)")
	flags.StringVar(&o.TLSKey, "tls-key", "", "the PEM key of --tls-cert")
	flags.StringSliceVar(&o.Hosts, "host", nil, "names and addresses for the certificate made at start (default loopback)")
	flags.BoolVar(&kubernetes, "kubernetes", false, "let Pods of this cluster log in by authn-k8s: look them up, and bring certificates to them")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the cluster of --kubernetes (default: $KUBECONFIG, or the cluster that this process runs in)")
	flags.DurationVar(&o.UserTokenTTL, "user-token-ttl", 0, "the life of a user's access token (default 8m)")
	flags.DurationVar(&o.HostTokenTTL, "host-token-ttl", 0, "the life of a host's access token (default 8m)")

	initialize := &cobra.Command{
		Use:   "init",
		Short: "Prepare a folder: account, admin's API key, data key, CA",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readValues(&o, values, cmd.InOrStdin()); err != nil {
				return err
			}
			return terminal.During(cmd.ErrOrStderr(), "Preparing "+o.Dir, func() error { return home.Init(cmd.Context(), o, cmd.OutOrStdout()) })
		},
	}
	rekey := &cobra.Command{
		Use:   "rekey --dir DIR",
		Short: "Have the data in a folder be sealed under a new data key, while the server goes on",
		Long: `Makes a new data key and has all data be sealed under it, by the server that
serves the folder or, if none does, by itself. When nothing is left under the old
key, that is gone. It may be killed at any moment and run again. Backups from
before need the old key: copy data.key beside them first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return home.Rekey(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	for _, c := range []*cobra.Command{cmd, initialize, rekey} {
		c.Flags().StringVar(&o.Dir, "dir", "", "the folder for data, keys and CA")
	}
	for _, c := range []*cobra.Command{cmd, initialize} {
		c.Flags().StringVar(&o.Account, "account", "", "the account (default: the one that the folder has, or default)")
		c.Flags().StringArrayVar(&o.Policies, "policy", nil, "a policy file to load into root; may be repeated")
		c.Flags().StringArrayVar(&values, "values", nil, "a YAML file of values to set, variable id: text; - for standard input; may be repeated")
	}
	cmd.AddCommand(initialize, rekey)
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
