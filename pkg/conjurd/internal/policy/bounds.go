package policy

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Limits on the expansion of one text. With anchors a short text can repeat the
// same list many times. One statement can relate many roles to many resources.
const (
	maxItems = 500_000   // statements, memberships and permissions
	maxNodes = 4_000_000 // items of all lists and mappings
	maxDepth = 64
	maxID    = 2 << 10 // bytes; the genuine server's database accepts a little more
)

// bound checks a text before it is parsed, because each node takes many times the
// memory of its text.
func bound(text []byte) *Error {
	marks := 0
	for _, mark := range []string{"\n", ",", ":", "- ", "[", "{"} {
		marks += bytes.Count(text, []byte(mark))
	}
	if marks > 2*maxNodes {
		return tooLong(place{1, 0})
	}
	return nil
}

func tooLong(at place) *Error {
	return at.errorf("the policy is too long: split it into several of at most %d statements, memberships and permissions", maxItems)
}

// unfolded returns the number of nodes in n after all aliases are expanded. It
// stops counting beyond maxNodes. sizes caches the size of each alias target.
func unfolded(n *yaml.Node, sizes map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		size, ok := sizes[n.Alias]
		if !ok {
			sizes[n.Alias] = maxNodes + 1 // for an anchor inside its own value
			size = unfolded(n.Alias, sizes)
			sizes[n.Alias] = size
		}
		return size
	}
	total := 1
	for _, child := range n.Content {
		if total += unfolded(child, sizes); total > maxNodes {
			break
		}
	}
	return total
}

// count adds n to the number of statements, memberships and permissions.
func (p *parser) count(at place, n int) error {
	if p.items += n; p.items > maxItems {
		return tooLong(at)
	}
	return nil
}
