package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newConfigCommand() *cobra.Command {
	var t tool.Tool
	return newToolCommand(&t, "config", "Print the effective configuration", `Prints the effective configuration without secrets, from annotations,
configuration file, environment and defaults. The output is YAML. With --output
json, it is JSON.

The connection to Conjur is optional; see validate. Warnings go to standard
error.

Exit status: 0, or 1 if the configuration is invalid. Then nothing is printed.`, 1,
		func(*cobra.Command, []string) error { return t.Config() })
}
