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
		Short: "Show how changes in Conjur reach five groups of secrets",
		Long: `Starts a Conjur-compatible server on loopback with 25 variables. Runs Syncer
against it, over TLS, into a temporary folder. Then it rotates values, edits a
template, revokes a variable and restores it. It shows each change when it reaches
its file. It prints the address of its status page, and never shows a value.

With --rotate, it rotates a key instead, while two programs sign and verify tokens.

Exit status: 0 only if every change arrived, or no token was rejected.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rotation {
				return demo.Rotate(cmd.Context(), cmd.OutOrStdout())
			}
			return demo.Run(cmd.Context(), life, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&rotation, "rotate", false, "show the rotation of a key set")
	cmd.Flags().DurationVar(&life, "for", 20*time.Second, "how long to run")
	return cmd
}
