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
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

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
