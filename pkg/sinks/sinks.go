// Package sinks brings bytes to where applications read them, whole or not at
// all: no reader, and no crash, ever meets a part of a change.
//
// A sink reads what is there and applies changes. What the changes are is
// decided by others, which compare a State with what is wanted.
package sinks

import (
	"io/fs"

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// WholeFile is the name of the single part of a target that is one file.
const WholeFile = ""

// maxSize is how many bytes a file target's parts may have together. Apply
// refuses more; what is there and larger cannot be the sink's own.
const maxSize = 16 << 20

// State is what is there for a target. The zero State is nothing at all.
type State struct {
	// Sight is for the target's status.
	records.Sight
	// Parts is the content by part name; nil when nothing is there. The
	// receiver owns the values and wipes them.
	Parts map[string]secret.Value
	// Mode holds the permission bits of a file; 0 where parts have none.
	Mode fs.FileMode
	// Stale says that what is there must be written again even when Parts
	// and Mode are as wanted: it cannot be read, has another owner or field
	// manager, has more than maxSize bytes, or is the rest of a change that
	// was interrupted. A part that was not read has the zero Value, so Parts
	// still says what there is to remove.
	Stale bool
	// Members are those of the Changes that were applied last, in ascending
	// order. Others may have written them: they say what to ask for, and prove
	// nothing.
	Members []string
	// Sets are those of the Changes that were applied last.
	Sets map[string]targets.DeliveredSet
}

// Changes is what must be done to a target. The zero Changes is nothing.
type Changes struct {
	// Parts is the whole content wanted; nil when the target must go away.
	// The sink reads the values during Apply only, and does not wipe them.
	Parts map[string]secret.Value
	// Set lists the names in Parts that are new or differ, and all of them
	// when something else than the content differs.
	Set []string
	// Remove lists the names that are there, are ours, and must go.
	Remove []string
	// Members, when not nil, are to be remembered with the content, for a State
	// of a later process: the ids of variables that the content does not name.
	Members []string
	// Sets, when not nil, are what the content shows then of sets of versions, by
	// variable, to be noted with it.
	Sets *map[string]targets.DeliveredSet
	// Restores: all that is changed is what somebody deleted.
	Restores bool
}

// Empty reports whether no part is to be changed, whatever Parts holds. Applying
// empty changes touches nothing but what is remembered; in particular a target
// goes away only when Parts is nil and Remove names something.
func (c Changes) Empty() bool { return len(c.Set) == 0 && len(c.Remove) == 0 }
