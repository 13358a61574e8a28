package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newValidateCommand() *cobra.Command {
	var t tool.Tool
	var connection, strict bool
	cmd := newToolCommand(&t, "validate", "Check the configuration and list every problem at once", `Checks annotations, environment and configuration file like run, and lists every
problem. With -f, it checks every workload in a manifest instead, and the conjur-map
and the groups of every Secret in the manifest.

If a variable whose name begins with CONJUR_ is set, the connection (Conjur's
address, account and identity) and MY_POD_NAMESPACE are checked too. --connection
always checks the connection.

With -f, the environment is that of the provider's container. Values of Secrets and
ConfigMaps outside the manifest count as valid, and files of the Pod are not
checked. A Secret must have a map or a group if a workload lists it, or if it lacks
the label that selects Secrets.

With --values, a file as for render, a warning names each node-specific secret
whose general variable is not in the file.

Problems go to standard error, one per line. With --output json, standard output is
the object {"errors": [...], "warnings": [...]}, each item with "key" and "message".

Exit status: 0 if the configuration is valid, 1 if there are problems.`, 1,
		func(*cobra.Command, []string) error { return t.Validate(connection, strict) })
	cmd.Flags().BoolVar(&connection, "connection", false, "check the connection to Conjur even if no variable CONJUR_… is set")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 if there are warnings")
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	cmd.Flags().StringVar(&t.Values, "values", "", "the YAML or JSON file of values; - for standard input")
	return cmd
}
