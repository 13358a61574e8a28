package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newRenderCommand() *cobra.Command {
	var t tool.Tool
	var group, out string
	cmd := newToolCommand(&t, "render", "Render groups with values from a file, without a server", `Renders what run would write, with values from a JSON object of variable id to
a text or to {"base64": "…"}. With --group one group's file goes to standard
output, byte for byte and nothing else; with --out all groups are written below
a folder. With -f the groups are those of the workload in a manifest, read as
validate does it; without --group and --out it is the Secrets of the manifest
that go to standard output as YAML, with what their conjur-map and their groups
make put into their data. Templates in ConfigMaps are read from the same
manifest. The variables that * stands for are those that have a value; what a
format cannot hold of them is left out, as run does it. Warnings go to standard
error.

With --output json standard output is {"targets": [...]}, each with "key",
"path", "mode", "format" and, of --group, "parts", each a "name" (empty, but
for the format directory) and its content in "base64"; of Secrets it is a List.

Exit status: 0, or 1 with nothing written if anything is wrong.`, 1,
		func(cmd *cobra.Command, _ []string) error { return t.Render(cmd.Context(), group, out) })
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the file of values; - for standard input")
	cmd.Flags().StringVar(&group, "group", "", "the group whose file is printed")
	cmd.Flags().StringVar(&out, "out", "", "the folder below which all files are written")
	return cmd
}
