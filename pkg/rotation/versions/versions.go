// Package versions says what may happen next to a set of versions of a secret.
// It is pure: it reads no clock and asks nobody.
//
// A set is one variable with all versions of a secret, the keys that sign
// tokens or the logins of a database. A version is made, becomes the primary,
// the only one that is used for what is new, and is retired when nobody needs
// it any more:
//
//	pending → accepted → primary → retiring → revoking → retired
//	                        ↑          ↓
//	                        ←──── returning
//
// Every arrow is one write of the whole document, whose step counts the writes.
// Between two arrows stand the gates: facts that open the way, such as "every
// consumer has the new key". [Next] says which arrow is due.
//
// Several processes may hold on to a document that is no longer the newest, for
// as long as they like. Three things keep that harmless: a write is compared
// with what was read, or on a server that cannot compare, [Document.Counts]
// says which of two documents holds; what goes outside was written before; and
// the outside itself refuses who comes late, by [Version.Fence]. Decision 029
// has the reasons, and the model in this package's tests walks all of it.
package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Bounds of a set.
const (
	MaxVersions = 16       // that are not retired
	MaxRefusal  = 512      // bytes of why a version was refused
	maxBytes    = 64 << 10 // of the encoded document
	maxRetired  = 10       // that are remembered
	maxLog      = 20       // lines that are remembered, and more that answer commands
	maxAnswers  = 80       // of those
	maxStep     = 1 << 53  // above all steps: what every reader of JSON can count to
)

// State is how far a version has come.
type State string

const (
	// Pending is made and has its bytes; the outside may know it or not.
	Pending State = "pending"
	// Accepted can be used, and is handed out beside the primary.
	Accepted State = "accepted"
	// Primary is the one version that is used for what is new.
	Primary State = "primary"
	// Retiring is still valid for those that have not left it.
	Retiring State = "retiring"
	// Returning was retiring and is to be the primary again.
	Returning State = "returning"
	// Revoking is about to be refused outside, and never becomes primary again.
	Revoking State = "revoking"
	// Retired has no bytes left.
	Retired State = "retired"
)

// Version is one version of the secret.
type Version struct {
	// ID is a file name without a dot. One that is made here is the UTC second,
	// such as 20261122t013907, above all earlier ones of the set.
	ID    string
	State State
	Step  uint64    // of the write that brought the state
	Since time.Time // of that write
	Made  time.Time
	// Promoted is when it became primary first; zero: it never did.
	Promoted time.Time
	// Left is since when all consumers are seen to use the primary instead;
	// zero: they are not.
	Left time.Time
	// Fence is what the outside knows the version by: its ID, or after a
	// rollback a later one.
	Fence string
	// Forced says that a person had it revoked past its gate.
	Forced bool
	// Filled says that parts were added that the outside minted.
	Filled bool
	// Refused is why the outside refused it, in at most MaxRefusal bytes; empty: it did
	// not, or did not say.
	Refused string
	Parts   map[string]secret.Value // by name; none once it is retired
	// Set is the document that returned this version; nil for a version in
	// [Document.Versions].
	Set *Document
}

// Entry is a line of a set's log.
type Entry struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"`
	Command string    `json:"command,omitempty"` // the ID of the command that it answers
	Refused bool      `json:"refused,omitempty"` // the command was not obeyed
	Reason  string    `json:"reason,omitempty"`  // why a person passed a gate
}

// Document is a set. It and its versions are never changed in place.
type Document struct {
	Step  uint64 // counts the writes
	Owner string // the only controller that may change it
	// Identity tells this set from every other set that has, or had, the same
	// variable. A set receives it with its first write and keeps it. Empty: an
	// earlier Syncer wrote the set.
	Identity string
	// Claimed is the fence of the last "claim". The set may take over whatever
	// another set left outside up to this fence. Empty: nobody claimed the set.
	Claimed string
	Paused  bool
	// Namespaces are those whose Secrets show the set, in ascending order, or
	// anyNamespace where they are many; nil: nobody has noted them.
	Namespaces []string
	Versions   []Version // the newest first
	Log        []Entry   // the newest last
}

// Version returns the one with that id.
func (d *Document) Version(id string) (Version, bool) {
	return d.find(func(v Version) bool { return v.ID == id })
}

// Primary returns the primary. A set has none before its first promotion.
func (d *Document) Primary() (Version, bool) {
	return d.find(func(v Version) bool { return v.State == Primary })
}

// Coming returns the version that is on its way to primary.
func (d *Document) Coming() (Version, bool) {
	return d.find(func(v Version) bool { return v.State == Pending || v.State == Accepted || v.State == Returning })
}

// Usable returns the versions that consumers are to have, the newest first.
func (d *Document) Usable() []Version {
	return slices.DeleteFunc(slices.Clone(d.Versions), func(v Version) bool { return v.State == Pending || v.State == Retired })
}

// Owned says whose the set is, to somebody else.
func (d *Document) Owned() string {
	if d.Owner == "" {
		return `nobody rotates the set; to rotate it here, "claim" it`
	}
	return fmt.Sprintf(`the set is %q's; to take it over, "claim" it`, d.Owner)
}

// Refused says that the newest version was refused outside, and why; "" if not.
func (d *Document) Refused() string {
	if len(d.Versions) == 0 || d.Versions[0].Refused == "" {
		return ""
	}
	return fmt.Sprintf("%s was refused: %s", d.Versions[0].ID, d.Versions[0].Refused)
}

// Ahead says which version is from after now; "" if none is. What waits for a time
// waits for longer then.
func (d *Document) Ahead(now time.Time) string {
	v, ok := d.find(func(v Version) bool { return v.Since.After(now.Add(time.Minute)) })
	if !ok {
		return ""
	}
	return fmt.Sprintf("version %s is from %s, which is still to come: the clock of Conjur went back, or the set was edited", v.ID, v.Since.Format(time.RFC3339))
}

// Former returns the version that was primary before the present one and is
// still valid.
func (d *Document) Former() (former Version, ok bool) {
	for _, v := range d.Versions {
		if (v.State == Retiring || v.State == Returning) && v.Promoted.After(former.Promoted) {
			former, ok = v, true
		}
	}
	return former, ok
}

// Live returns how many versions have bytes.
func (d *Document) Live() (n int) {
	for _, v := range d.Versions {
		if v.State != Retired {
			n++
		}
	}
	return n
}

// Stage returns one word for where the set is: "idle", "apply", "introduce",
// "return", "switch" or "revoke".
func (d *Document) Stage() string {
	coming, _ := d.Coming()
	switch coming.State {
	case Pending:
		return "apply"
	case Accepted:
		return "introduce"
	case Returning:
		return "return"
	}
	stage := "idle"
	for _, v := range d.Versions {
		switch v.State {
		case Revoking:
			return "revoke"
		case Retiring:
			stage = "switch"
		}
	}
	return stage
}

// Awaits returns what opens the way out of the stage, as far as the set itself
// says it; "" if it is idle.
func (d *Document) Awaits() string {
	coming, _ := d.Coming()
	primary, _ := d.Primary()
	switch d.Stage() {
	case "apply", "return":
		return coming.ID + " is accepted outside"
	case "introduce":
		return "all consumers have " + coming.ID
	case "switch":
		return "all consumers use " + primary.ID + ", and what was before is kept for long enough"
	case "revoke":
		return "what was before is refused"
	}
	return ""
}

// Counts reports whether d holds rather than one that was written before it,
// where a server took both. The higher step does. Of two documents of one step
// the one that sends the newer fence outside does, because the outside refuses
// the older one afterwards. Otherwise the first one holds: its writer may have
// seen it alone and acted on it, while the writer of the second one sees both.
func (d *Document) Counts(before *Document) bool {
	if d.Step != before.Step {
		return d.Step > before.Step
	}
	return Later(d.sends(), before.sends())
}

// sends returns the fence that the outside is about to learn; empty: none.
func (d *Document) sends() string {
	if v, ok := d.Coming(); ok && v.State != Accepted {
		return v.Fence
	}
	return ""
}

// Has reports whether d has the last step of other among its own.
func (d *Document) Has(other *Document) bool {
	last := other.Log[len(other.Log)-1]
	return slices.ContainsFunc(d.Log, func(e Entry) bool {
		return e.At.Equal(last.At) && e.What == last.What && e.Command == last.Command
	})
}

func (d *Document) find(is func(Version) bool) (Version, bool) {
	if i := slices.IndexFunc(d.Versions, is); i >= 0 {
		v := d.Versions[i]
		v.Set = d
		return v, true
	}
	return Version{}, false
}

// Wipe clears the parts of all versions, for every document that shares them.
func (d *Document) Wipe() {
	for _, v := range d.Versions {
		for _, part := range v.Parts {
			part.Wipe()
		}
	}
}

// PartNames returns the names of a version's parts, sorted.
func (v Version) PartNames() []string {
	return slices.SortedFunc(maps.Keys(v.Parts), strings.Compare)
}

// Expires returns when the first of the certificates in a version's parts
// expires; zero: it has none.
func (v Version) Expires() (first time.Time) {
	for _, part := range v.Parts {
		if at := secret.Expires(part.Bytes()); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}
