package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/demo"
)

func newDemoCommand() *cobra.Command {
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the pipeline at work: a server, five groups of secrets, and changes that arrive",
		Long: `Starts a Conjur-compatible server on loopback with 25 variables, runs the
pipeline against it over TLS into a temporary folder, then rotates values,
edits a template, revokes a variable and restores it, and shows each change as
it reaches its file; on a terminal, as a table that changes in place. The
address that it prints is that of its status page. Values are never shown.

Exit status: 0 only if every change arrived.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), life, cmd.OutOrStdout()) },
	}
	cmd.Flags().DurationVar(&life, "for", 20*time.Second, "how long to go on")
	return cmd
}
