package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newValidateCommand() *cobra.Command {
	var t tool.Tool
	var connection bool
	cmd := newToolCommand(&t, "validate", "Check what was configured, and list every problem at once", `Checks annotations, environment and configuration file as run does, and lists
all that is wrong; or, with -f, the same of every workload in a manifest, and
the conjur-map and the groups of every Secret in it.

Whether Conjur's address, account and identity are set is checked when a
variable whose name begins with CONJUR_ is set, and with --connection. With
neither, only what is there is checked, such as the annotations alone. The Pod's
namespace (MY_POD_NAMESPACE) is checked with such a variable only.

With -f the environment is that of the provider's container, and not this
process's. The values of Secrets and ConfigMaps that are not in the manifest are
taken to be right, and files of the Pod are not looked for. A Secret must have a
map or a group if a workload lists it, or if it lacks the label by which it is
found otherwise.

With --values, a file as render has it, it warns of each secret that a node may
have of its own if the file has not the general variable, on which nodes without
their own depend.

Problems go to standard error, a line each; with --output json standard output
is the object {"errors": [...], "warnings": [...]}, each item with "key" and
"message".

Exit status: 0 if nothing is wrong, 1 if something is. Warnings are not wrong.`, 1,
		func(*cobra.Command, []string) error { return t.Validate(connection) })
	cmd.Flags().BoolVar(&connection, "connection", false, "check that the connection to Conjur is set, whatever the environment")
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the file of values, which says what there is; - for standard input")
	return cmd
}
