package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newExplainCommand() *cobra.Command {
	var t tool.Tool
	cmd := newToolCommand(&t, "explain TARGET", "Show the variables, template, place and triggers of a target", `Shows everything about one target:
- a file, by its group or its key: "db" or "file/db"
- a Kubernetes Secret of the configuration, by its name, with or without its
  namespace, or by its key: "db", "shop/db" or "secret/shop/db"
- with -f, a Secret of the manifest, or else a target of the manifest's workload

The output lists errors in the definition of a Secret as "faults".

With --node, the output lists the node-specific variables beside the general
variables that they replace. With --values as well, a file as for render, it shows
which of the two each entry reads.`, 1,
		func(_ *cobra.Command, args []string) error { return t.Explain(args[0]) })
	cmd.ValidArgsFunction = completer(targetsOf(&t).first).complete
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the YAML or JSON file of values; - for standard input")
	return cmd
}
