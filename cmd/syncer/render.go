package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newRenderCommand() *cobra.Command {
	var t tool.Tool
	var group, out string
	cmd := newToolCommand(&t, "render", "Render groups and Secrets with values from a file, without a server", `Renders the output of run with values from a file: a YAML or JSON mapping of variable
id to a text or to {base64: …}. The result is:
- with --group, the file of one group on standard output, byte for byte
- with --out, the files of all groups, below a folder
- with -f and without both, the manifest's Secrets on standard output as YAML,
  with the data from their conjur-map and their groups

With -f, the groups are those of the workload in a manifest, and ConfigMaps with
templates come from it too. The wildcard * selects the variables that have a value.
Like run, it omits variables that the format does not support.

With --output json, standard output is {"targets": [...]}, each with "key", "path",
"mode" and "format". With --group there are also "parts", each with its "name" and its
content in "base64". For Secrets, standard output is a List.

After an error, nothing is written.`, 1,
		func(cmd *cobra.Command, _ []string) error { return t.Render(cmd.Context(), group, out) })
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the YAML or JSON file of values; - for standard input")
	cmd.Flags().StringVar(&group, "group", "", "the group whose file is printed")
	_ = cmd.RegisterFlagCompletionFunc("group", groupsOf(&t).complete)
	cmd.Flags().StringVar(&out, "out", "", "the folder below which all files are written")
	return cmd
}
