// Package records contains a record of each target: its wanted state and its known state.
// It finds targets by their dependencies.
package records

import (
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/targets"
)

// Record is one target: its spec, which is the wanted state, and its status, which is the
// known state. It is a copy, so that the caller may change it.
type Record struct {
	Spec   *targets.Target
	Status Status
	// Seen is what the sink knows of the destination besides the Status: from
	// Set.RecordBeforeFirstSync, or from its last read in this sync. nil means nothing.
	Seen any

	set  *Set
	made uint64 // identifies the record among those of its key
	asks int    // how often callers had asked for the target; see Status.Asked
}

// Status is the known state of a target. Only the worker that holds the target's key
// changes it, as a whole; see Lane.Settle.
type Status struct {
	// Proven is the time of the last sync that proved that the target equals Conjur; zero
	// means none.
	Proven time.Time
	// Changed is the time of the last sync that changed the target; zero means none.
	Changed time.Time
	// Err is the error of the last sync; nil if it succeeded or there was none.
	Err     error
	Trouble Trouble // about Err
	// Delivered is the fingerprint of the last delivered content. Zero means that the target is
	// not known to contain anything from Syncer.
	Delivered fingerprint.Fingerprint
	// TargetEmpty means that the destination had nothing of the target when last read, and
	// no write followed.
	TargetEmpty bool
	// RevokedRemoved means that revoked content was removed from the target since the
	// process began.
	RevokedRemoved bool
	// WriteFailed and RemovalFailed report that a later write or removal failed. It may
	// have taken effect all the same.
	WriteFailed, RemovalFailed bool
	// Asked means that a caller wants the target restored if it was deleted.
	Asked bool
	// Sight is the sink's last read or write. Ours means that the content is what Syncer
	// wrote or would have written.
	Sight
	Ours bool
	// Content contains the variables of each group with a wildcard, and under "" those of
	// a Secret's map. The value is true if the variable was delivered, and false if it
	// was omitted. A missing group is unknown. The maps must not be changed.
	Content map[string]map[string]bool
	// Sets are the delivered sets of versions, by variable. The map must not be changed.
	Sets map[string]targets.DeliveredSet
	// LeftOut is targets.Secret.LeftOut from the last report.
	LeftOut []string
	// Warned are the warnings of the last rendering.
	Warned []string
	// Expires is the expiry of the delivered content.
	Expires targets.Expiry
}

// Sight is the state in which a sink found or left the destination of a target. Only the
// sink interprets its content; others may compare versions.
type Sight struct {
	// Version identifies the state of the destination; "" means that none was seen.
	Version string
	// Revision is the known content of ours in a Secret.
	Revision Revision
	// Rivals are the field managers whose values the sink replaced in its last write.
	Rivals []string
	// Former contains states in which the target was left at its former places.
	Former []string
	// Outline is what the sink needs to change the content without another read. It contains
	// no value. "" means that a change needs a read.
	Outline string
}

// See records the result of a sink's read.
func (s *Status) See(found Sight) {
	s.Ours = s.Ours && found.Version == s.Version
	s.Sight = found
}

// Revision describes our content of a Secret, and its stamp. The zero Revision means none.
type Revision struct {
	Fingerprint fingerprint.Fingerprint
	Stamp       Stamp
	// Restarts is the value of the annotation targets.RestartsAnnotation.
	Restarts string
}

// Stamp contains the values of the annotations targets.RevisionAnnotation,
// targets.RevisedAnnotation and targets.FilledAnnotation. "" means that there is none.
type Stamp struct{ Number, Revised, Filled string }

// Fingerprint returns the fingerprint of some parts under a head. The head distinguishes
// fingerprints of equal parts. Those of two Sets are not comparable.
func (r Record) Fingerprint(head string, parts map[string][]byte) fingerprint.Fingerprint {
	return r.set.Fingerprint(head, parts)
}

// Fingerprint does the same for a target without a record.
func (s *Set) Fingerprint(head string, parts map[string][]byte) fingerprint.Fingerprint {
	return s.prints.Make(func(h hash.Hash) {
		hashText(h, []byte(head))
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			hashText(h, []byte(name))
			hashText(h, parts[name])
		}
	})
}

// hashText adds the length of a text, and the text.
func hashText(h hash.Hash, b []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(b)))
	h.Write(length[:])
	h.Write(b)
}

// SetContent records the variables that a group has from a wildcard.
func (s *Status) SetContent(group string, in map[string]bool) {
	content := maps.Clone(s.Content)
	if content == nil {
		content = map[string]map[string]bool{}
	}
	content[group] = in
	s.Content = content
}

const (
	// reminder is the interval at which a lasting trouble is logged again.
	reminder = time.Hour
	// mostAMinute bounds the lines of a trouble whose text keeps changing.
	mostAMinute = 3
)

// Trouble is a lasting error. The zero Trouble means none.
type Trouble struct {
	Began, Logged time.Time
	Text          string // as logged
	Times         int    // how often it occurred
	lines         int    // logged without a minute between them
}

// After returns the trouble after err, where nil ends the trouble. log is true if the
// trouble must be logged: at its start, at its end, and at each reminder while it lasts.
// A changed text is also logged, at most three times a minute. It may come only once,
// because an invalid template is not rendered again before a change.
func (t Trouble) After(err error, now time.Time) (after Trouble, log bool) {
	if err == nil {
		return Trouble{}, t.Times > 0
	}
	if t.Times == 0 {
		t.Began = now
	}
	t.Times++
	quiet := now.Sub(t.Logged)
	if quiet >= time.Minute {
		t.lines = 0
	}
	if t.Times == 1 || quiet >= reminder || t.Text != err.Error() && t.lines < mostAMinute {
		t.Logged, t.Text = now, err.Error()
		t.lines++
		return t, true
	}
	return t, false
}
