package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
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

// Override is a node-specific variable.
type Override struct {
	Node     string `json:"node"`
	Variable string `json:"variable"` // the general variable that it replaces
	Set      bool   `json:"set"`      // it has a value, or the server does not say
	General  bool   `json:"general"`  // the general variable exists
}

// Overrides lists the overrides that an identity can see, by node and variable.
func Overrides(ctx context.Context, client variables.Conjur, base string) ([]Override, error) {
	if err := definitions.CheckNodeBase(base); err != nil {
		return nil, err
	}
	known, err := variables.New(client, variables.Config{})
	if err != nil {
		return nil, err
	}
	catalog := known.NewCatalog()
	if _, err := catalog.Refresh(ctx); err != nil {
		return nil, err
	}
	ids, unset := catalog.IDs(), catalog.Unset()
	all := []Override{}
	for _, id := range ids {
		node, general, ok := definitions.SplitNodeVariable(base, id)
		if !ok {
			continue
		}
		_, there := slices.BinarySearch(ids, general)
		all = append(all, Override{node, general, !unset[id], there})
	}
	slices.SortFunc(all, func(a, b Override) int {
		return strings.Compare(a.Node+" "+a.Variable, b.Node+" "+b.Variable)
	})
	return all, nil
}

// NodePolicy is the policy that gives nodes their own variables.
type NodePolicy struct {
	Base string
	// Host is the id of the host that reads as a node. NODE in it stands for the node's
	// name.
	Host  string
	Nodes []string
	IDs   []string // of the general variables
	// Remove means that the policy removes the variables instead.
	Remove bool
}

// YAML returns the policy. The error joins the problems of all ids.
func (p NodePolicy) YAML() ([]byte, error) {
	var text strings.Builder
	errs := []error{definitions.CheckNodeBase(p.Base)}
	if len(p.Nodes) == 0 {
		errs = append(errs, definitions.CheckNode(""))
	}
	for _, node := range p.Nodes {
		errs = append(errs, definitions.CheckNode(node))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err // each id would repeat it
	}
	for _, node := range p.Nodes {
		for _, general := range p.IDs {
			id, err := definitions.NodeVariable(p.Base, node, general)
			switch {
			case err != nil:
				errs = append(errs, err)
			case p.Remove:
				fmt.Fprintf(&text, "- !delete\n  record: !variable %s\n", quoted(id))
			default:
				host := strings.ReplaceAll(p.Host, config.AnyNode, node)
				fmt.Fprintf(&text, "- !variable %s\n- !permit\n  role: !host %s\n  privileges: [read, execute]\n  resource: !variable %s\n",
					quoted(id), quoted(host), quoted(id))
			}
		}
	}
	return []byte(text.String()), errors.Join(errs...)
}

// quoted returns a text as YAML writes it, with quotes only if necessary.
func quoted(text string) string {
	out, err := yaml.Marshal(text)
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSpace(string(out))
}
