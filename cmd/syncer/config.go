package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newConfigCommand() *cobra.Command {
	var t tool.Tool
	return newToolCommand(&t, "config", "Print the effective configuration", `Prints the effective configuration without secrets, from annotations,
configuration file, environment and defaults.

The connection to Conjur is optional; see validate. Warnings go to standard
error. If the configuration is invalid, nothing is printed.`, 1,
		func(*cobra.Command, []string) error { return t.Config() })
}
