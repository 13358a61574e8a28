package policy

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Limits on the expansion of one text. With anchors a short text can repeat the
// same list many times. One statement can relate many roles to many resources.
const (
	maxItems = 200_000   // statements, memberships, permissions, and items of records
	itemSize = 512       // bytes of text that count as one item more
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
	return at.errorf("the policy is too long: split it into several of at most %d statements, memberships, permissions and annotations, of which long ones count several times", maxItems)
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

// count adds n statements, memberships, permissions or items of records. bytes is the
// length of their names and texts together, which anchors can repeat.
func (p *parser) count(at place, n, bytes int) error {
	if p.items += n + bytes/itemSize; p.items > maxItems {
		return tooLong(at)
	}
	return nil
}

// length returns the length of all texts together.
func length[T ~string](list []T) (n int) {
	for _, s := range list {
		n += len(s)
	}
	return n
}

// countRecord counts the items of a record.
func (p *parser) countRecord(at place, r *Record) error {
	size := length(r.RestrictedTo) + length(r.PublicKeys) + length(r.Layers)
	for _, a := range r.Annotations {
		size += len(a.Name) + len(a.Value)
	}
	return p.count(at, len(r.Annotations)+len(r.RestrictedTo)+len(r.PublicKeys)+len(r.Layers), size)
}
