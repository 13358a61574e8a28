package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newConfigCommand() *cobra.Command {
	var t tool.Tool
	return newToolCommand(&t, "config", "Print the configuration that is in effect", `Prints all that is in effect after annotations, configuration file, environment
and defaults, secrets left out: as YAML, or as JSON with --output json. The form
text is YAML too.

A connection to Conjur need not be set; see validate. Warnings go to standard
error.

Exit status: 0, or 1 with nothing printed if the configuration is not valid.`, 1,
		func(*cobra.Command, []string) error { return t.Config() }, "yaml", "json", "text")
}
