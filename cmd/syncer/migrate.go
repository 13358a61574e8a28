package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newMigrateCommand() *cobra.Command {
	var t tool.Tool
	var image string
	cmd := newToolCommand(&t, "migrate", "Put Syncer in the place of the Secrets Provider in a manifest", `json:"manifest,omitempty"`, 1,
		func(*cobra.Command, []string) error { return t.Migrate(image) })
	cmd.Flags().StringVar(&image, "image", defaultImage, "Syncer's image")
	addManifestFlags(cmd, &t)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}
