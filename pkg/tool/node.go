package tool

import (
	"fmt"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
)

// variablesIn returns the variables in the file of values.
func (t *Tool) variablesIn() (map[string]bool, error) {
	o, err := t.offline(nil)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(o.values))
	for id, value := range o.values {
		ids[id] = true
		value.Wipe()
	}
	return ids, nil
}

// checkNodes warns of variables with a node-specific alternative if the file of values
// contains only the node-specific one, or none of the two.
func (t *Tool) checkNodes(cfg *config.Config, v config.Validation) config.Validation {
	if t.Values == "" || cfg == nil {
		return v
	}
	ids, err := t.variablesIn()
	if err != nil {
		return both(v, config.NewValidation(nil, err))
	}
	for _, target := range cfg.Targets {
		for _, e := range target.Entries {
			if e.Override == "" || ids[e.Variable] {
				continue
			}
			message := fmt.Sprintf("the secret %q is not found; create node-specific secrets, such as %q, on each node, or that one", e.Variable, e.Override)
			if ids[e.Override] {
				message = fmt.Sprintf("the secret %q is not found; create it, or only nodes with their own, such as %q, get one", e.Variable, e.Override)
			}
			v.Warnings = append(v.Warnings, config.Problem{Key: string(target.Key), Message: message})
		}
	}
	return v
}

// readOf returns the variable that each entry reads, if the variables in ids have a
// value.
func readOf(entries []targets.Entry, ids map[string]bool) map[string]string {
	read := map[string]string{}
	for _, e := range entries {
		switch {
		case e.Override != "" && ids[e.Override]:
			read[e.Alias] = e.Override
		case ids[e.Variable]:
			read[e.Alias] = e.Variable
		default:
			read[e.Alias] = "none"
		}
	}
	return read
}

// alsoMissing names the node-specific variable that is missing as well as the general one.
func alsoMissing(t *targets.Target, general string) string {
	for own, of := range t.Overrides {
		if of == general && !t.Uses(own) {
			return " (nor for " + own + ")"
		}
	}
	return ""
}

// PrintOverrides writes the overrides, and a warning for each that replaces no general
// variable.
func (t *Tool) PrintOverrides(all []Override) error {
	for _, o := range all {
		if !o.General {
			t.line("warning", fmt.Errorf("node %s: the general variable %q does not exist; create it, or the other nodes get no value", o.Node, o.Variable))
		}
	}
	if t.Output.ForPrograms() {
		return t.print(map[string]any{"overrides": all})
	}
	table := t.table()
	table.row("NODE", "VARIABLE\tVALUE")
	for _, o := range all {
		table.row(o.Node, o.Variable+"\t"+map[bool]string{true: "set", false: "none"}[o.Set])
	}
	return table.Flush()
}
