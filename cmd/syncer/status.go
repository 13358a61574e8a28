package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/brief"
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
		Long: `Asks a process with a status page (server.status) for the targets that are not fresh,
with time, reason and the next event. In the Pod:

    kubectl exec deploy/syncer -- syncer status

From outside, run kubectl port-forward deploy/syncer 8080 at the same time.

Exit status: 0 if every target is fresh, 1 if one is not, 2 if the status is
unknown. With --watch, an interrupt ends the command with the status shown last.`,
		Args: func(cmd *cobra.Command, args []string) error { return asStatus(2, checkUsage(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Output, o.Out = format.Format, cmd.OutOrStdout()
			if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
				return asStatus(2, fmt.Errorf("--url %s is not the address of a server; use one such as http://127.0.0.1:8080", brief.Address(o.URL)))
			}
			ask := o.Once
			if watch {
				ask = o.Watch
			}
			err := ask(cmd.Context())
			if errors.Is(err, status.ErrNotFresh) {
				return errLogged
			}
			return asStatus(2, explained(cmd, o, err))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asStatus(2, flagError(cmd, err)) })
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", ownURL(os.Getenv(addressVariable)), "the address at which the process serves its probes")
	flags.StringVar(&o.TokenFile, "token-file", os.Getenv(tokenVariable), "the file of the bearer token that the process requires")
	flags.BoolVar(&o.All, "all", false, "also list fresh targets")
	flags.BoolVarP(&watch, "watch", "w", false, "continue, and show changes")
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// explained adds what to do about an address or a token to an error of status.
func explained(cmd *cobra.Command, o status.Overview, err error) error {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	timeout, _ := errors.AsType[net.Error](err)
	address := origin(cmd, "url", addressVariable)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: no process listens at the address of %s; set server.address and server.status of the process, or from outside its Pod run kubectl port-forward deploy/syncer 8080", err, address)
	case errors.Is(err, status.ErrForeign):
		return fmt.Errorf("%w: another program listens at the address of %s; name the address of Syncer's probes", err, address)
	case noTLS || errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the process serves plain HTTP at the address of %s; begin it with http://", err, address)
	case timeout != nil && timeout.Timeout():
		return fmt.Errorf("%w: no answer from the address of %s; check the address, and whether a NetworkPolicy permits the connection", err, address)
	case errors.Is(err, status.ErrUnauthorized) && o.TokenFile == "":
		return fmt.Errorf("%w: the process requires a token; name its file with --token-file or %s", err, tokenVariable)
	case errors.Is(err, status.ErrUnauthorized):
		return fmt.Errorf("%w: the token in %s, named by %s, is not the one in the process's server.statusTokenFile", err, o.TokenFile, origin(cmd, "token-file", tokenVariable))
	}
	return err
}

// origin names the flag or the variable that a setting comes from.
func origin(cmd *cobra.Command, flag, variable string) string {
	switch {
	case cmd.Flags().Changed(flag):
		return "--" + flag
	case os.Getenv(variable) != "":
		return variable
	}
	return "--" + flag + ", which is the default"
}

// The variables that sidecars get as settings.
const (
	addressVariable = "SERVER_ADDRESS"
	tokenVariable   = "SERVER_STATUS_TOKEN_FILE"
)

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
