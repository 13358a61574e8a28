// Package sinks writes content to the places where applications read it. Each
// change is atomic: no reader sees a part of it, even after a crash.
//
// A sink reads the current state and applies changes. Its callers compute the
// changes by comparing a State with the wanted content.
package sinks

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// WholeFile is the name of the single part of a target that is one file.
const WholeFile = ""

// maxSize bounds the parts of a file target together, in bytes. Apply refuses more.
// Therefore larger content cannot come from the sink.
const maxSize = 16 << 20

// State is the current state of a target. The zero State means that nothing exists.
type State struct {
	// Sight is for the target's status.
	records.Sight
	// Parts is the content by part name, or nil if the target is absent. The
	// receiver owns the values and wipes them.
	Parts map[string]secret.Value
	// Mode holds the permission bits of a file, or 0 if parts have none.
	Mode fs.FileMode
	// Stale means that the target must be written again, even if Parts and Mode are
	// as wanted. Possible reasons: it is unreadable, has another owner or field
	// manager, exceeds maxSize bytes, or is left from an interrupted change. A part
	// that was not read has the zero Value, so that Parts still names it for
	// removal.
	Stale bool
	// Members are the Members of the last applied Changes, in ascending order.
	// Other programs may have written them. They say which variables to request,
	// and prove nothing.
	Members []string
	// Sets are the Sets of the last applied Changes.
	Sets map[string]targets.DeliveredSet
	// Seen is for the Record of an Apply before the receiver wipes the values, so that
	// the sink need not read again. nil is allowed.
	Seen any
}

// Changes describes a change of a target. The zero Changes changes nothing.
type Changes struct {
	// Parts is the complete wanted content, or nil to remove the target. The sink
	// reads the values only during Apply, and does not wipe them.
	Parts map[string]secret.Value
	// Set lists the names in Parts that are new or differ. If anything besides the
	// content differs, it lists all of them.
	Set []string
	// Kept lists the names in Parts that stay as they are. A value that is newer than the
	// one in Parts stays too.
	Kept []string
	// Remove lists the existing names of ours to remove.
	Remove []string
	// Members are the ids of variables that the content does not name. If not nil,
	// they are stored with the content for the State of a later process.
	Members []string
	// Sets, if not nil, are summaries of the sets of versions in the new content,
	// by variable. They are stored with the content.
	Sets *map[string]targets.DeliveredSet
	// Restores means that the changes only restore deleted content.
	Restores bool
}

// Empty reports whether no part changes, regardless of Parts. Applying empty
// changes writes only Members and Sets. In particular, a target is removed only if
// Parts is nil and Remove names a part.
func (c Changes) Empty() bool { return len(c.Set) == 0 && len(c.Remove) == 0 }

// ErrOutdated means that nothing was written, because the changes were computed from a
// state that is not the present one. The caller reads the target, and computes them again.
var ErrOutdated = errors.New("it has changed since Syncer last wrote it")

// MissingError means that a Kubernetes Secret does not exist and must not be
// created. Delivery follows as soon as somebody creates it.
type MissingError struct{ Namespace, Name string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no Secret %s/%s; create it, or set create: true for it", e.Namespace, e.Name)
}

// RefusedError means that a target cannot hold the wanted content, so nothing was
// sent, or that it holds other content than was sent. A retry cannot succeed until the definition, a value or the target changes.
type RefusedError struct {
	Target targets.Key
	Reason string // says what to do; contains no value
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Target, e.Reason) }

// TargetError is any other error of a target. Its text names the target.
type TargetError struct {
	Target targets.Key
	Err    error
}

func (e *TargetError) Error() string { return fmt.Sprintf("%s: %v", e.Target, e.Err) }

// Unwrap returns the error without the target's name.
func (e *TargetError) Unwrap() error { return e.Err }
