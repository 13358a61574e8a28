package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
)

func newExplainCommand() *cobra.Command {
	var f toolFlags
	cmd := newToolCommand(&f, "explain TARGET", "Tell which variables, template, place and triggers belong to a target", `Tells all that belongs to one target. A file is named by its group or its key:
"db" or "file/db". A Kubernetes Secret that the configuration defines is named
by its name, with or without its namespace, or by its key: "db", "shop/db" or
"secret/shop/db". With -f it is one of a manifest's Secrets, or else of what the
manifest's workload has.

What is wrong in the definition of a Secret keeps nothing else from being
delivered; it is told with the rest, as "faults".

Exit status: 0, or 1 if there is no such target or the configuration is not
valid.`, 1,
		func(cmd *cobra.Command, args []string) error {
			if f.pod.manifest != "" {
				return f.explainOfManifest(cmd, args[0])
			}
			cfg, err := f.load(cmd)
			if err != nil {
				return err
			}
			return f.explainOf(cmd, cfg, args[0])
		})
	f.pod.addTo(cmd)
	return cmd
}

// explainOf explains a target of the configuration.
func (f *toolFlags) explainOf(cmd *cobra.Command, cfg *config.Config, name string) error {
	if t, ok := definedSecret(cfg, name); ok {
		return printSecretExplanation(cmd.OutOrStdout(), f.output, newSecretExplanation(cfg, t))
	}
	explanation, ok := config.Explain(cfg, name)
	switch {
	case !ok:
		return fmt.Errorf("there is no target %q; there are %s", name, targetNames(cfg))
	case f.output == outputJSON:
		return printJSON(cmd.OutOrStdout(), explanation)
	}
	return printExplanation(cmd.OutOrStdout(), explanation)
}

func printExplanation(w io.Writer, e config.Explanation) error {
	table := newTable(w)
	table.row("target", string(e.Key))
	table.row("path", e.Path)
	table.row("mode", e.Mode)
	table.row("format", string(e.Format))
	if e.Template != "" {
		table.row("template", e.Template)
	}
	var entries []string
	for _, entry := range e.Entries {
		entries = append(entries, fmt.Sprintf("%s: %s (%s)", entry.Alias, entry.Variable, entry.ContentType))
	}
	table.list("entries", entries)
	table.list("variables", e.Variables)
	table.list("triggers", triggerLines(e.Triggers))
	return table.Flush()
}

func triggerLines(triggers []config.Trigger) (lines []string) {
	for _, t := range triggers {
		lines = append(lines, t.Kind+": "+t.When)
	}
	return lines
}

// table has rows of a head and a text.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)} }

func (t table) row(head, text string) { fmt.Fprintln(t, head+"\t"+text) }

// list has the head before the first line only.
func (t table) list(head string, lines []string) {
	for _, line := range lines {
		t.row(head, line)
		head = ""
	}
}

// targetNames lists the targets of the configuration, for an error.
func targetNames(cfg *config.Config) string {
	var names []string
	for _, t := range cfg.Targets {
		names = append(names, t.Group)
	}
	for _, def := range cfg.Kubernetes.Definitions {
		names = append(names, def.Namespace+"/"+def.Name)
	}
	if len(names) == 0 && cfg.Destination == config.DestinationKubernetes {
		return "none in the configuration, which chooses Secrets by their label; name a manifest that has them by -f"
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
