package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool"
)

// waitMost is how long wait waits by default: while a postStart hook runs, a
// Pod shows no log of the container and cannot be deleted.
const waitMost = 2 * time.Minute

func newWaitCommand() *cobra.Command {
	var dir string
	var most time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all secrets have been provided; for a postStart hook",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return tool.Wait(cmd.Context(), dir, most) },
	}
	cmd.Flags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder with the sentinel files")
	cmd.Flags().DurationVar(&most, "timeout", waitMost, "give up after this time, and say what is missing; 0: never")
	return cmd
}
