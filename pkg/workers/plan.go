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
	// Gone is set when a variable of the target is proven to be gone; there
	// is no content then.
	Gone *RevokedError
}

// Policy is what a sync may do beyond bringing content up to date.
type Policy struct {
	// RemoveRevoked allows to remove what holds the value of a variable that
	// is proven to be gone.
	RemoveRevoked bool
}

// Plan compares what should be with what is there. It is pure: no client, no
// clock, no file.
//
//	wanted      there            planned
//	content     the same         nothing
//	content     nothing, other   set what differs, remove what is too much
//	content     stale or another mode    set everything
//	gone        something        remove everything, if the policy allows
//	gone        nothing          nothing
func Plan(want Want, have sinks.State, policy Policy) sinks.Changes {
	if want.Gone != nil {
		if !policy.RemoveRevoked {
			return sinks.Changes{}
		}
		return sinks.Changes{Remove: slices.Sorted(maps.Keys(have.Parts))}
	}
	changes := sinks.Changes{Parts: want.Parts}
	all := have.Stale || have.Mode != want.Mode && len(have.Parts) > 0
	for _, name := range slices.Sorted(maps.Keys(want.Parts)) {
		there, ok := have.Parts[name]
		if all || !ok || !there.Equal(want.Parts[name]) {
			changes.Set = append(changes.Set, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.Parts)) {
		if _, ok := want.Parts[name]; !ok {
			changes.Remove = append(changes.Remove, name)
		}
	}
	return changes
}
