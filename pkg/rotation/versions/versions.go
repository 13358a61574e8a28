// Package versions decides which change may happen next to a version set of a secret. It
// is pure: it reads no clock and sends no requests.
//
// A set is one variable with all versions of a secret: keys that sign tokens, or logins
// of a database. The outside is the system that must accept each login, such as a database;
// keys have none. A version is made and becomes the primary, the only version for new uses.
// It is retired when nobody needs it any more:
//
//	pending → accepted → primary → retiring → revoking → retired
//	                        ↑          ↓
//	                        ←──── returning
//
// Every arrow is one write of the whole document, whose step counts the writes. Two gates
// open only when the consumers are ready. Gate A, before the primary: every consumer has
// the accepted version. Gate B, after retiring: every consumer uses the primary instead.
// [Next] says which arrow is due.
//
// Several processes may hold an outdated document, for any length of time. Three rules
// make that harmless. First, a write is compared with the document that was read; on a
// server without compare-and-swap, [Document.Supersedes] says which of two documents
// counts. Second, every outside act is written to the document before. Third, each act
// carries a fence ([Version.Fence]), an id that only rises. The outside remembers it, and
// refuses an act with an earlier one. Decision 029 has the reasons, and the model in this
// package's tests explores all of it.
package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Limits of a set.
const (
	MaxVersions = 16       // versions that are not retired
	MaxRefusal  = 512      // bytes of the reason for a refusal
	maxBytes    = 64 << 10 // of the encoded document
	maxRetired  = 10       // retired versions that are kept
	maxLog      = 20       // lines that are kept, in addition to those that answer commands
	maxAnswers  = 80       // lines that answer commands
	maxStep     = 1 << 53  // above all steps: the largest integer that every JSON reader handles
)

// State is the progress of a version.
type State string

const (
	// Pending has its bytes. The outside may or may not know it.
	Pending State = "pending"
	// Accepted can be used, and is delivered beside the primary.
	Accepted State = "accepted"
	// Primary is the only version for new uses.
	Primary State = "primary"
	// Retiring is still valid for consumers that have not left it.
	Retiring State = "retiring"
	// Returning was retiring and will become the primary again.
	Returning State = "returning"
	// Revoking is about to be refused outside and never becomes primary again.
	Revoking State = "revoking"
	// Retired has no bytes left.
	Retired State = "retired"
)

// Version is one version of the secret.
type Version struct {
	// ID is a file name without a dot. A generated ID is the UTC second, such as
	// 20261122t013907, and higher than all earlier IDs of the set.
	ID    string
	State State
	Step  uint64    // of the write that set the state
	Since time.Time // of that write
	Made  time.Time
	// Promoted is when the version first became primary; zero means never.
	Promoted time.Time
	// Left is since when all consumers have been seen to use the primary instead; zero
	// means that they do not.
	Left time.Time
	// Fence is the id that the outside remembers for the version: its ID, or a later one
	// after a rollback.
	Fence string
	// Forced means that an operator overrode its gate to revoke it.
	Forced bool
	// Filled means that parts were added that the outside minted.
	Filled bool
	// Refused is why the outside refused the version, in at most MaxRefusal bytes. It is
	// empty if the outside did not refuse or gave no reason.
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
	Reason  string    `json:"reason,omitempty"`  // why an operator overrode a gate
}

// Document is a set. The document and its versions are never changed in place.
type Document struct {
	Step  uint64 // counts the writes
	Owner string // the only controller that may change it
	// Identity distinguishes this set from every other set that has, or had, the same
	// variable. A set receives it with its first write and keeps it.
	Identity string
	// Claimed is the fence of the last "claim". Up to this fence, the set may take over
	// everything that another set left outside. Empty means that nobody claimed the set.
	Claimed string
	Paused  bool
	// Namespaces are the namespaces whose Secrets show the set, in ascending order, or
	// anyNamespace if there are many. nil means that nothing has been noted.
	Namespaces []string
	Versions   []Version // the newest first
	Log        []Entry   // the newest last
}

// Version returns the version with that id.
func (d *Document) Version(id string) (Version, bool) {
	return d.find(func(v Version) bool { return v.ID == id })
}

// Primary returns the primary. A set has none before its first promotion.
func (d *Document) Primary() (Version, bool) {
	return d.find(func(v Version) bool { return v.State == Primary })
}

// Coming returns the version that will become primary.
func (d *Document) Coming() (Version, bool) {
	return d.find(func(v Version) bool { return v.State == Pending || v.State == Accepted || v.State == Returning })
}

// Usable returns the versions that consumers should have, the newest first.
func (d *Document) Usable() []Version {
	return slices.DeleteFunc(slices.Clone(d.Versions), func(v Version) bool { return v.State == Pending || v.State == Retired })
}

// OwnerText names the owner of the set, for other controllers.
func (d *Document) OwnerText() string {
	if d.Owner == "" {
		return `nobody rotates the set; to rotate it here, "claim" it`
	}
	return fmt.Sprintf(`the set is %q's; to take it over, "claim" it`, d.Owner)
}

// RefusalText says that the newest version was refused outside, and why; "" if it was not.
func (d *Document) RefusalText() string {
	if len(d.Versions) == 0 || d.Versions[0].Refused == "" {
		return ""
	}
	return fmt.Sprintf("%s was refused: %s", d.Versions[0].ID, d.Versions[0].Refused)
}

// FutureText says which version has a time after now; "" if none has. Waits that depend on
// that time take longer.
func (d *Document) FutureText(now time.Time) string {
	v, ok := d.find(func(v Version) bool { return v.Since.After(now.Add(time.Minute)) })
	if !ok {
		return ""
	}
	return fmt.Sprintf("version %s has a time in the future, %s: the clock of Conjur went back, or the set was edited", v.ID, v.Since.Format(time.RFC3339))
}

// Former returns the version that was primary before the present one and is still valid.
func (d *Document) Former() (former Version, ok bool) {
	for _, v := range d.Versions {
		if (v.State == Retiring || v.State == Returning) && v.Promoted.After(former.Promoted) {
			former, ok = v, true
		}
	}
	return former, ok
}

// Live returns the number of versions that have bytes.
func (d *Document) Live() (n int) {
	for _, v := range d.Versions {
		if v.State != Retired {
			n++
		}
	}
	return n
}

// Stage returns one word for the state of the set: "idle", "apply", "introduce",
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

// Awaits returns the event that ends the stage, as far as the set itself says it; "" if
// it is idle.
func (d *Document) Awaits() string {
	coming, _ := d.Coming()
	primary, _ := d.Primary()
	switch d.Stage() {
	case "apply", "return":
		return coming.ID + " is accepted outside"
	case "introduce":
		return "all consumers have " + coming.ID
	case "switch":
		return "all consumers use " + primary.ID + ", and the earlier version was kept for long enough"
	case "revoke":
		return "the earlier version is refused"
	}
	return ""
}

// Supersedes reports whether d counts rather than a document that was written before it, if
// a server accepted both. The document with the higher step counts. If the steps are equal,
// the document that sends the newer fence outside counts, because the outside then refuses
// the older fence. Otherwise the first document counts: its writer may have seen it alone
// and acted on it, while the second writer sees both.
func (d *Document) Supersedes(before *Document) bool {
	if d.Step != before.Step {
		return d.Step > before.Step
	}
	return Later(d.sends(), before.sends())
}

// sends returns the fence that the outside is about to receive; empty means none.
func (d *Document) sends() string {
	if v, ok := d.Coming(); ok && v.State != Accepted {
		return v.Fence
	}
	return ""
}

// ContainsLastStepOf reports whether d contains the last step of other.
func (d *Document) ContainsLastStepOf(other *Document) bool {
	last := other.Log[len(other.Log)-1] // each write adds a line
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

// Expires returns the earliest expiry of the certificates in a version's parts; zero if
// there are none.
func (v Version) Expires() (first time.Time) {
	for _, part := range v.Parts {
		if at := secret.Expires(part.Bytes()); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// NewID returns an id for a version or a fence. It is higher than all ids of the set.
func (d *Document) NewID(now time.Time) string {
	id, newest := IDAt(now), d.newest()
	if at, err := time.Parse(idLayout, newest); err == nil && id <= newest {
		id = IDAt(at.Add(time.Second))
	}
	return id
}

const idLayout = "20060102t150405"

// IDAt returns the generated id of a time, such as 20261122t013907.
func IDAt(at time.Time) string { return at.UTC().Format(idLayout) }

// Predates reports whether the outside carries a later fence than all fences of the set.
// That happens after a restore of Conjur.
func (d *Document) Predates(fence string) bool {
	newest := d.newest()
	return newest == "" || Later(fence, newest)
}

func (d *Document) newest() (id string) {
	for _, v := range d.Versions {
		for _, other := range []string{v.ID, v.Fence} {
			if id == "" || Later(other, id) {
				id = other
			}
		}
	}
	return id
}

// Later reports whether the id a comes after b. Ids that a person chose come before all
// generated ones.
func Later(a, b string) bool {
	if generated := isGenerated(a); generated != isGenerated(b) {
		return generated
	}
	return a > b
}

// isGenerated reports whether an id has the form of NewID.
func isGenerated(id string) bool {
	day, clock, _ := strings.Cut(id, "t")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return len(day) == 8 && len(clock) == 6 && digits(day) && digits(clock)
}

const (
	// maxNamespaces limits the namespaces that a set notes, so that they take at most a
	// tenth of its bytes.
	maxNamespaces = 100
	// anyNamespace stands for more namespaces than maxNamespaces.
	anyNamespace = "*"
)

// Shows reports whether the Secrets of a namespace may show the set, as far as noted. A
// set without notes may be shown anywhere.
func (d *Document) Shows(namespace string) bool {
	if d.Namespaces == nil {
		return len(d.Versions) > 0
	}
	return slices.Contains(d.Namespaces, namespace) || slices.Contains(d.Namespaces, anyNamespace)
}

// Noted reports whether the set notes all of these namespaces.
func (d *Document) Noted(namespaces []string) bool {
	return d.Namespaces != nil && !slices.ContainsFunc(namespaces, func(n string) bool { return !d.Shows(n) })
}

// Note returns the set with these namespaces instead of the present ones. It is written
// together with another change. The names are sorted.
func (d *Document) Note(namespaces []string) *Document {
	if len(namespaces) > maxNamespaces {
		namespaces = []string{anyNamespace}
	}
	next := *d
	next.Namespaces = append([]string{}, namespaces...)
	return &next
}

// NoteAlone is Note as a separate write.
func (d *Document) NoteAlone(namespaces []string, by Entry) *Document {
	what := fmt.Sprintf("noted the namespaces that show it: %d", len(namespaces))
	return d.change(what, by, func(next *Document) { *next = *next.Note(namespaces) })
}
