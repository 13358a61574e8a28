package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// conjurdFlags are the flags of conjurd and conjurd init.
type conjurdFlags struct {
	dir, addr        string
	account          string
	hosts            []string
	policies, values []string
	strict           bool
	audit, backup    string
	plainHTTP        bool
	kubernetes       bool
	kubeconfig       string
	tlsCert, tlsKey  string
	userTTL, hostTTL time.Duration
}

func newConjurdCommand() *cobra.Command {
	var f conjurdFlags
	cmd := &cobra.Command{
		Use:   "conjurd",
		Short: "Serve a Conjur-compatible API from this binary, to try, develop and test against",
		Long: `Serves the part of Conjur's API that its clients need, over TLS on loopback.
With --dir it keeps its data, sealed, in that folder, which "conjurd init"
prepares; without it everything is gone at the end.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveConjurd(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8443", "where to listen; port 0 for a free one")
	flags.BoolVar(&f.strict, "strict", false, "do nothing that the genuine server would not do")
	flags.StringVar(&f.audit, "audit", "", "a file to append a line of JSON to for every decision")
	flags.StringVar(&f.backup, "backup", "", "a file to write a copy of the data to at each SIGUSR1, while serving")
	flags.BoolVar(&f.plainHTTP, "plain-http", false, "serve without TLS; for loopback, or behind a proxy")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "a PEM certificate (default: one made at start by the folder's own CA)")
	flags.StringVar(&f.tlsKey, "tls-key", "", "the PEM key of --tls-cert")
	flags.StringSliceVar(&f.hosts, "host", nil, "names and addresses for the certificate made at start (default loopback)")
	flags.BoolVar(&f.kubernetes, "kubernetes", false, "let Pods of this cluster log in by authn-k8s: look them up, and bring certificates to them")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the cluster of --kubernetes (default: $KUBECONFIG, or the cluster that this process runs in)")
	flags.DurationVar(&f.userTTL, "user-token-ttl", 0, "the life of a user's access token (default 8m)")
	flags.DurationVar(&f.hostTTL, "host-token-ttl", 0, "the life of a host's access token (default 8m)")

	initialize := &cobra.Command{
		Use:   "init",
		Short: "Prepare a folder: account, admin's API key, data key, CA",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return initConjurd(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	for _, c := range []*cobra.Command{cmd, initialize} {
		c.Flags().StringVar(&f.dir, "dir", "", "the folder for data, keys and CA")
		c.Flags().StringVar(&f.account, "account", "", "the account (default: the one that the folder has, or default)")
		c.Flags().StringArrayVar(&f.policies, "policy", nil, "a policy file to load into root; may be repeated")
		c.Flags().StringArrayVar(&f.values, "values", nil, "a YAML file of values to set, variable id: text; may be repeated")
	}
	cmd.AddCommand(initialize)
	return cmd
}

// initConjurd prepares a folder that conjurd can serve.
func initConjurd(ctx context.Context, f conjurdFlags, out io.Writer) error {
	if f.dir == "" {
		return errors.New("conjurd init: name the folder with --dir")
	}
	home, err := openConjurdHome(ctx, f, true)
	if err != nil {
		return err
	}
	home.print(out, "")
	return home.server.Close()
}

// serveConjurd serves until ctx ends.
func serveConjurd(ctx context.Context, f conjurdFlags, out io.Writer) (err error) {
	temporary := f.dir == ""
	if temporary {
		if f.dir, err = os.MkdirTemp("", "conjurd-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(f.dir)) }()
	}
	home, err := openConjurdHome(ctx, f, temporary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.close()) }()

	config, err := f.tlsConfig(home.ca)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", f.addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --addr", err)
	}
	scheme := "https://"
	if config == nil {
		scheme = "http://"
	}
	defer home.backUpOnSignal()()
	home.print(out, scheme+ln.Addr().String())
	return home.server.Serve(ctx, ln, config)
}

// tlsConfig is nil for plain HTTP.
func (f conjurdFlags) tlsConfig(ca *conjurd.CA) (*tls.Config, error) {
	if f.plainHTTP {
		return nil, nil
	}
	cert, err := ca.Issue(f.hosts...)
	if f.tlsCert != "" || f.tlsKey != "" {
		cert, err = tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}, nil
}

func (f conjurdFlags) path(name string) string { return filepath.Join(f.dir, name) }
