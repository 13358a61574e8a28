package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
)

func newExplainCommand() *cobra.Command {
	var f toolFlags
	return newToolCommand(&f, "explain TARGET", "Tell which variables, template, file and triggers belong to a target", `Tells all that belongs to one target, which is named by its group or its key:
"db" or "file/db".

Exit status: 0, or 1 if there is no such target or the configuration is not
valid.`, 1,
		func(cmd *cobra.Command, args []string) error {
			cfg, err := f.load(cmd)
			if err != nil {
				return err
			}
			explanation, ok := config.Explain(cfg, args[0])
			switch {
			case !ok:
				return fmt.Errorf("there is no target %q; there are %s", args[0], targetNames(cfg))
			case f.output == outputJSON:
				return printJSON(cmd.OutOrStdout(), explanation)
			}
			return printExplanation(cmd.OutOrStdout(), explanation)
		})
}

func printExplanation(w io.Writer, e config.Explanation) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(head string, cells ...string) { fmt.Fprintln(table, head+"\t"+strings.Join(cells, "\t")) }
	row("target", string(e.Key))
	row("path", e.Path)
	row("mode", e.Mode)
	row("format", string(e.Format))
	if e.Template != "" {
		row("template", e.Template)
	}
	for i, entry := range e.Entries {
		row(first(i, "entries"), fmt.Sprintf("%s: %s (%s)", entry.Alias, entry.Variable, entry.ContentType))
	}
	for i, variable := range e.Variables {
		row(first(i, "variables"), variable)
	}
	for i, trigger := range e.Triggers {
		row(first(i, "triggers"), trigger.Kind+": "+trigger.When)
	}
	return table.Flush()
}

// first gives the head of a list's first row.
func first(i int, head string) string {
	if i == 0 {
		return head
	}
	return ""
}

func targetNames(cfg *config.Config) string {
	var names []string
	for _, t := range cfg.Targets {
		names = append(names, t.Group)
	}
	return strings.Join(names, ", ")
}
