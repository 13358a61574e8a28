package definitions

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
)

// A node-specific variable may replace a general variable. On the node n1,
// node/n1/apps/db replaces apps/db. For user/u/db, which belongs to a user, it is
// user/u/node/n1/db. Both are below the base, if there is one.

const (
	nodeSegment = "node"
	userSegment = "user"
)

// NodeVariable returns the id of the node-specific variable that may replace the general
// one.
func NodeVariable(base, node, general string) (string, error) {
	if err := CheckNode(node); err != nil {
		return "", err
	}
	name, below := cutBase(base, general)
	owner, own := cutUser(name)
	switch {
	case !below:
		return "", fmt.Errorf("the variable %q is not below %q, where those of nodes are; move it there, or change nodeSecretsBase", general, base)
	case strings.HasPrefix(own, nodeSegment+"/"):
		return "", fmt.Errorf("the variable %q is that of a node already; name the one that all nodes have", general)
	}
	id := joinPath(base, owner, nodeSegment, node, own)
	if n := len(url.PathEscape(id)); n > maxVariable {
		return "", fmt.Errorf("the node-specific variable of %q is too long for a request: its URL has %d bytes, and the limit is %d", general, n, maxVariable)
	}
	return id, nil
}

// SplitNodeVariable is the inverse of NodeVariable. It returns false if the variable is
// not node-specific.
func SplitNodeVariable(base, id string) (node, general string, ok bool) {
	name, below := cutBase(base, id)
	owner, own := cutUser(name)
	rest, is := strings.CutPrefix(own, nodeSegment+"/")
	node, own, named := strings.Cut(rest, "/")
	if !below || !is || !named || own == "" || CheckNode(node) != nil {
		return "", "", false
	}
	return node, joinPath(base, owner, own), true
}

// CheckNode returns the problem with the name of a node, which is a segment of an id.
func CheckNode(name string) error {
	odd := func(r rune) bool {
		return !strings.ContainsRune("-._", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	switch {
	case name == "":
		return errors.New("the name of the node is empty")
	case name == "." || name == ".." || strings.ContainsFunc(name, odd):
		return fmt.Errorf("%q is not the name of a node; it has letters, digits, -, _ and . only", brief.Input(name))
	}
	return nil
}

// CheckNodeBase returns the problem with the base, a path without slashes at its ends. ""
// means no base.
func CheckNodeBase(base string) error {
	switch {
	case base == "":
	case strings.ContainsAny(base, ", \t\n"):
		return fmt.Errorf("%q is not one path; there is one base for all groups", brief.Input(base))
	case strings.Contains(base, "*") || slices.ContainsFunc(strings.Split(base, "/"), func(s string) bool { return s == "" || s == "." || s == ".." }):
		return fmt.Errorf("%q is not the path of a policy; write it as data/apps", brief.Input(base))
	}
	return nil
}

func cutBase(base, id string) (name string, below bool) {
	if base == "" {
		return id, true
	}
	return strings.CutPrefix(id, base+"/")
}

// cutUser splits user/u/own. The owner is empty if the variable belongs to no user.
func cutUser(name string) (owner, own string) {
	if rest, is := strings.CutPrefix(name, userSegment+"/"); is {
		if user, own, named := strings.Cut(rest, "/"); named && user != "" && own != "" {
			return userSegment + "/" + user, own
		}
	}
	return "", name
}

func joinPath(segments ...string) string {
	return strings.Join(slices.DeleteFunc(segments, func(s string) bool { return s == "" }), "/")
}

// NodeSecrets selects the entries of a group for which Syncer first looks for a
// node-specific variable. The zero NodeSecrets selects none.
type NodeSecrets struct {
	All bool
	// Required permits only node-specific variables.
	Required bool
	Aliases  []string // if not All
}

// ParseNodeSecrets reads a Boolean, required, or aliases separated by commas.
func ParseNodeSecrets(text string) (NodeSecrets, error) {
	switch strings.TrimSpace(text) {
	case "true", "TRUE", "True", "1", "t", "T":
		return NodeSecrets{All: true}, nil
	case "false", "FALSE", "False", "0", "f", "F":
		return NodeSecrets{}, nil
	case "required":
		return NodeSecrets{All: true, Required: true}, nil
	}
	var n NodeSecrets
	for alias := range strings.SplitSeq(text, ",") {
		if alias = strings.TrimSpace(alias); alias == "" {
			return NodeSecrets{}, fmt.Errorf("%q is none of true, false, required, and not a list of aliases", brief.Input(text))
		}
		n.Aliases = append(n.Aliases, alias)
	}
	return n, nil
}

// Of returns the entries with their node-specific variables. The error joins the problems
// of all entries.
func (n NodeSecrets) Of(entries []targets.Entry, base, node string) ([]targets.Entry, error) {
	var errs []error
	wanted, there := sets.New(n.Aliases...), sets.New[string]()
	for _, e := range entries {
		there.Insert(e.Alias)
	}
	for _, alias := range n.Aliases {
		if !there.Has(alias) {
			errs = append(errs, fmt.Errorf("the group has no alias %q; use one that it has, or true", brief.Input(alias)))
		}
	}
	own := slices.Clone(entries)
	for i, e := range own {
		if !n.All && !wanted.Has(e.Alias) {
			continue
		}
		if e.All() {
			errs = append(errs, fmt.Errorf("%q stands for many variables; name each that may be a node's own", e.Variable))
			continue
		}
		id, err := NodeVariable(base, node, e.Variable)
		switch {
		case err != nil:
			errs = append(errs, err)
		case n.Required:
			own[i].Variable = id
		default:
			own[i].Override = id
		}
	}
	return own, errors.Join(errs...)
}
