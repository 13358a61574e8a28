package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool/demo"
)

func newDemoCommand() *cobra.Command {
	var life time.Duration
	var rotation bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the pipeline at work: a server, five groups of secrets, and changes that arrive",
		Long: `Starts a Conjur-compatible server on loopback with 25 variables, runs the
pipeline against it over TLS into a temporary folder, then rotates values,
edits a template, revokes a variable and restores it, and shows each change as
it reaches its file; on a terminal, as a table that changes in place. The
address that it prints is that of its status page. Values are never shown.

With --rotate it shows a key set instead: two programs sign and check tokens all
the time, while a new key is introduced to both, confirmed, promoted, and the old
one retired.

Exit status: 0 only if every change arrived, or no token was rejected.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rotation {
				return demo.Rotate(cmd.Context(), cmd.OutOrStdout())
			}
			return demo.Run(cmd.Context(), life, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&rotation, "rotate", false, "show how a key set is rotated")
	cmd.Flags().DurationVar(&life, "for", 20*time.Second, "how long to go on")
	return cmd
}
