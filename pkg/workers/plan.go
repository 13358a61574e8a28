package workers

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
)

// Want is the content that a target should hold.
type Want struct {
	Parts map[string]secret.Value
	// Mode is the wanted permission bits; 0 if parts have none.
	Mode fs.FileMode
	// Gone is set if a variable of the target is proven to be gone. Revoked then names
	// the parts that hold its value. A nil Revoked means the whole target, which then has
	// no Parts.
	Gone    *RevokedError
	Revoked map[string]bool
	// Keep names parts that stay unchanged if they exist, although they are not in Parts.
	// With KeepAll, every part stays that is not Revoked.
	Keep    map[string]bool
	KeepAll bool
}

// stays reports whether an existing part that is not wanted stays unchanged.
func (w Want) stays(name string, policy Policy) bool {
	if w.Revoked[name] {
		return !policy.RemoveRevoked
	}
	return w.KeepAll || w.Keep[name]
}

// Policy says which actions a sync may take besides updating content.
type Policy struct {
	// RemoveRevoked allows removing content that holds the value of a variable that is
	// proven to be gone.
	RemoveRevoked bool
	// KeepDeleted does not restore deleted content until the content changes or somebody
	// requests it.
	KeepDeleted bool
}

// Plan compares the wanted content with the existing content. It is pure: no client, no
// clock, no file. For each part:
//
//	wanted      there            planned
//	content     the same         nothing
//	content     nothing, other   set
//	content     any, but stale, or with another mode    set
//	revoked     something        remove, if the policy allows; else it stays
//	kept        something        it stays
//	nothing     something        remove
//	any of the last three    nothing     nothing
//
// Parts that stay are in the plan's Parts, unchanged. A plan that removes the whole
// target has no Parts.
func Plan(want Want, have sinks.State, policy Policy) sinks.Changes {
	if want.Gone != nil && want.Revoked == nil {
		if !policy.RemoveRevoked {
			return sinks.Changes{}
		}
		return sinks.Changes{Remove: slices.Sorted(maps.Keys(have.Parts))}
	}
	changes := sinks.Changes{Parts: make(map[string]secret.Value, len(want.Parts))}
	all := have.Stale || have.Mode != want.Mode && len(have.Parts) > 0
	for _, name := range slices.Sorted(maps.Keys(want.Parts)) {
		changes.Parts[name] = want.Parts[name]
		there, ok := have.Parts[name]
		if all || !ok || !there.Equal(want.Parts[name]) {
			changes.Set = append(changes.Set, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.Parts)) {
		_, wanted := want.Parts[name]
		switch {
		case wanted:
		case want.stays(name, policy):
			changes.Parts[name] = have.Parts[name]
			changes.Kept = append(changes.Kept, name)
		default:
			changes.Remove = append(changes.Remove, name)
		}
	}
	return changes
}
