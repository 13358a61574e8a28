package workers

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
)

// Want is what a target should hold.
type Want struct {
	Parts map[string]secret.Value
	// Mode is the wanted permission bits; 0 where parts have none.
	Mode fs.FileMode
	// Gone is set when a variable of the target is proven to be gone, and with
	// it Revoked, the names of the parts that hold its value. A nil Revoked
	// stands for the whole target, which then has no Parts.
	Gone    *RevokedError
	Revoked map[string]bool
	// Keep names parts that stay as they are if they are there, although they
	// are not in Parts; with KeepAll that is so of every part that is not
	// Revoked.
	Keep    map[string]bool
	KeepAll bool
}

// stays reports whether a part that is there and not wanted stays as it is.
func (w Want) stays(name string, policy Policy) bool {
	if w.Revoked[name] {
		return !policy.RemoveRevoked
	}
	return w.KeepAll || w.Keep[name]
}

// Policy is what a sync may do beyond bringing content up to date.
type Policy struct {
	// RemoveRevoked allows to remove what holds the value of a variable that
	// is proven to be gone.
	RemoveRevoked bool
	// KeepDeleted leaves away what somebody deleted until its content changes
	// or it is asked for.
	KeepDeleted bool
}

// Plan compares what should be with what is there. It is pure: no client, no
// clock, no file. Of each part:
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
// What stays is in the plan's Parts, as it is there. A plan that removes the
// whole target has none.
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
		default:
			changes.Remove = append(changes.Remove, name)
		}
	}
	return changes
}
