package policy

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Bounds on what one text may unfold to: anchors let a short text name the
// same list over and over, and a statement may relate each of many to each of
// many.
const (
	maxItems = 500_000   // statements, memberships and permissions
	maxNodes = 4_000_000 // items of all lists and mappings
	maxDepth = 64
	maxID    = 2 << 10 // bytes; the genuine server's database takes a little more
)

// bound checks a text before it is read: each node takes many times the bytes
// of its text.
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

// unfolded returns how many nodes n is with its aliases followed, and stops
// counting beyond maxNodes. Sizes has those of aliases' targets.
func unfolded(n *yaml.Node, sizes map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		size, ok := sizes[n.Alias]
		if !ok {
			sizes[n.Alias] = maxNodes + 1 // for an anchor inside what it stands for
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

// count takes n more statements, memberships or permissions into account.
func (p *parser) count(at place, n int) error {
	if p.items += n; p.items > maxItems {
		return tooLong(at)
	}
	return nil
}
