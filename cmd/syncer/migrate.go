package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newMigrateCommand() *cobra.Command {
	var t tool.Tool
	var image string
	var inPlace bool
	cmd := newToolCommand(&t, "migrate", "Replace the Secrets Provider by Syncer in a manifest", `Replaces the image of the Secrets Provider by Syncer's in the manifest, and writes it
to standard output. Standard error shows which settings Syncer reads differently,
which rights are missing, and what you must change by hand.
With --in-place, the files themselves change, and standard output lists them.

With --inject, workloads with the label of the chart's admission policy also get the
sidecar, for clusters without that policy. The file contains the chart's values. Only
lines are inserted.

Exit status: 0, or 1 if something in the manifest cannot work, or still has the image of
the Secrets Provider, as a kustomization may. Then no manifest is written. With --output json, standard output is an object with the manifest, the notes
and the problems.`, 1,
		func(*cobra.Command, []string) error { return t.Migrate(image, inPlace) })
	cmd.Flags().StringVar(&image, "image", defaultImage, "Syncer's image")
	cmd.Flags().BoolVar(&inPlace, "in-place", false, "change the files instead of writing the manifest")
	addManifestFlags(cmd, &t)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}
