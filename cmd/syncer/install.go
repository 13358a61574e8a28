package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/operate"
)

func newInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy this binary into a folder, such as a volume shared with a container that has no shell",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return operate.Install(args[0]) },
	}
}
