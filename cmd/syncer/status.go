package main

import (
	"cmp"
	"errors"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/health/status"
)

func newStatusCommand() *cobra.Command {
	var o status.Overview
	var watch bool
	var format *outputFlag
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which targets of a running process are not fresh, and why",
		Long: `Asks a process with a status page (server.status) about all of its targets. Lists
each target that is not fresh, with the time, the reason and the next event that it
waits for. In the Pod:

    kubectl exec deploy/syncer -- syncer status

From outside, run kubectl port-forward deploy/syncer 8080 at the same time.

Exit status: 0 if every target is fresh, 1 if one is not, 2 if the status is
unknown. With --watch, an interrupt ends the command with the status shown last.`,
		Args: func(cmd *cobra.Command, args []string) error { return asStatus(2, cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Output, o.Out = format.Format, cmd.OutOrStdout()
			var err error
			if watch {
				err = o.Watch(cmd.Context())
			} else {
				err = o.Once(cmd.Context())
			}
			if errors.Is(err, status.ErrNotFresh) {
				return errLogged
			}
			return asStatus(2, err)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asStatus(2, err) })
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", ownURL(os.Getenv("SERVER_ADDRESS")), "the address at which the process serves its probes")
	flags.StringVar(&o.TokenFile, "token-file", os.Getenv("SERVER_STATUS_TOKEN_FILE"), "the file of the bearer token that the process requires")
	flags.BoolVar(&o.All, "all", false, "also list fresh targets")
	flags.BoolVarP(&watch, "watch", "w", false, "continue, and show changes")
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// ownURL is the URL on this machine of a process that serves its probes at an address.
func ownURL(address string) string {
	host, port, err := net.SplitHostPort(cmp.Or(address, ":8080"))
	if err != nil {
		host, port = "", "8080"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
