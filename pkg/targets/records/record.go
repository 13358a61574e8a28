// Package records has a record of each target: what is wanted, and what is known
// of it. It finds targets by what they depend on.
package records

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Record is one target: its spec, which says what is wanted, and its status,
// which says what is known of it. It is a copy: whoever has it may change it.
type Record struct {
	Spec   *targets.Target
	Status Status

	set  *Set
	made uint64 // which of the records of its key it is
	asks int    // how often the target had been asked for
}

// Status is what is known of a target. Only the worker that holds the target's
// key changes it, as a whole; see Lane.Settle.
type Status struct {
	// Proven is when a sync last proved that the target holds what Conjur has;
	// zero: none has.
	Proven time.Time
	// Changed is when a sync last changed the target; zero: none has.
	Changed time.Time
	// Err is why the last sync failed; nil: it did not, or there was none.
	Err     error
	Trouble Trouble // about Err
	// Delivered is the print of what the target was last delivered as; zero: it
	// is not known to hold anything that Syncer has put there.
	Delivered Print
	// Bare: the destination was seen to hold nothing of the target, and nothing was
	// written since.
	Bare bool
	// WriteFailed and RemovalFailed: a write or a removal after that failed, and
	// may have been made all the same.
	WriteFailed, RemovalFailed bool
	// Asked: somebody wants the target back if it was deleted.
	Asked bool
	// Sight is what the sink last saw or left. Ours: that is what Syncer wrote,
	// or what it would have written.
	Sight
	Ours bool
	// Content says of each group with a wildcard, and under "" of a Secret's
	// map, which of its variables are in what was delivered, true, or were left
	// out, false. A group that is missing is not known. The maps are not changed
	// once they are here.
	Content map[string]map[string]bool
	// Sets are what was delivered of sets of versions, by variable. The map is not
	// changed once it is here.
	Sets map[string]targets.DeliveredSet
	// LeftOut is targets.Secret.LeftOut as it was last reported.
	LeftOut []string
	// Expires is about what was delivered.
	Expires targets.Expiry
}

// Sight is how a sink found or left the destination of a target. What it says
// is the sink's own; others may compare versions.
type Sight struct {
	// Version names the state of the destination; "": none was seen.
	Version string
	// Revision is what a Secret is known to hold of ours.
	Revision Revision
	// Rivals are the field managers whose values a sink wrote over last.
	Rivals []string
	// Former names states in which the target was left at places that are no
	// longer its own.
	Former []string
}

// See notes what a sink has found.
func (s *Status) See(found Sight) {
	s.Ours = s.Ours && found.Version == s.Version
	s.Sight = found
}

// Revision is what a Secret holds of ours, and the annotations that say so. The
// zero Revision is none.
type Revision struct {
	Print       Print
	Annotations map[string]string
}

// Print distinguishes contents without keeping them. Nobody who sees it can try
// values against it: its key is random and never leaves the process.
type Print [sha256.Size]byte

// Print returns the print of some parts under a head, which distinguishes what
// the parts do not. Prints of two sets have nothing to do with each other.
func (r Record) Print(head string, parts map[string][]byte) Print {
	mac := hmac.New(sha256.New, r.set.secret())
	text(mac, []byte(head))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		text(mac, []byte(name))
		text(mac, parts[name])
	}
	return Print(mac.Sum(nil))
}

func (s *Set) secret() []byte {
	s.once.Do(func() {
		s.key = make([]byte, sha256.Size)
		_, _ = rand.Read(s.key) // never fails
	})
	return s.key
}

// text adds a text and where it ends.
func text(h hash.Hash, b []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(b)))
	h.Write(length[:])
	h.Write(b)
}

// SetContent notes which variables of a wildcard a group has.
func (s *Status) SetContent(group string, in map[string]bool) {
	content := maps.Clone(s.Content)
	if content == nil {
		content = map[string]map[string]bool{}
	}
	content[group] = in
	s.Content = content
}
