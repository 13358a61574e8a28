package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newExplainCommand() *cobra.Command {
	var t tool.Tool
	cmd := newToolCommand(&t, "explain TARGET", "Show which variables, template, place and triggers belong to a target", `Shows all that belongs to one target. A file is named by its group or its key:
"db" or "file/db". A Kubernetes Secret that the configuration defines is named
by its name, with or without its namespace, or by its key: "db", "shop/db" or
"secret/shop/db". With -f it is one of a manifest's Secrets, or else of what the
manifest's workload has.

What is wrong in the definition of a Secret keeps nothing else from being
delivered; it is listed with the rest, as "faults".

With --node it names the node's own variables beside the general ones that they
replace. With --values too, a file as render has it, it says which of the two each
entry reads.

Exit status: 0, or 1 if there is no such target or the configuration is not
valid.`, 1,
		func(_ *cobra.Command, args []string) error { return t.Explain(args[0]) })
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the file of values, which says what there is; - for standard input")
	return cmd
}
