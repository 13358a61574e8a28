package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newMigrateCommand() *cobra.Command {
	var t tool.Tool
	var image string
	cmd := newToolCommand(&t, "migrate", "Put Syncer in the place of the Secrets Provider in a manifest", `Writes the manifest, or several as one, to standard output with Syncer's image
in the place of the Secrets Provider's, and to standard error what is to be known
about that: what is read otherwise, which rights are missing, what is left to do
by hand. Nothing else in the manifest changes.

Exit status: 0, or 1 with no manifest written if something in it cannot work.`, 1,
		func(*cobra.Command, []string) error { return t.Migrate(image) }, "yaml", "json", "text")
	cmd.Flags().StringVar(&image, "image", defaultImage, "Syncer's image")
	addManifestFlags(cmd, &t)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}
