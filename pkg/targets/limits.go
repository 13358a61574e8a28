package targets

import "fmt"

// What one Kubernetes Secret, which anybody in its namespace may write, may ask
// for. What is beyond a limit fails alone.
const (
	// MaxDefinition is the bytes of a Secret's map and of those of its annotations
	// that define its content, together.
	MaxDefinition = 256 << 10
	// MaxEntries is how many variables it may hold, those that a wildcard brings in
	// included.
	MaxEntries = 8000
	// MaxNames is how many workloads, or service accounts, it may name.
	MaxNames = 50
)

// What the templates in the ConfigMaps of one namespace may take.
const (
	// MaxTemplates is how many templates all targets of a namespace may use, and
	// MaxTemplate the bytes of each.
	MaxTemplates = 32
	MaxTemplate  = 64 << 10
)

// The bounds on the memory that Syncer needs for one Kubernetes Secret, in bytes:
// for itself, beside its definition, and for each entry, beside its texts. They
// are measured by a test, and a namespace has a budget of them.
const (
	SecretMemory = 9 << 9
	EntryMemory  = 1 << 10
)

// textCopies is how often the texts of a definition are in memory: as they were
// read, and taken apart.
const textCopies = 3

// Memory is a bound on the memory that Syncer needs for a Kubernetes Secret, in
// bytes, without the templates in ConfigMaps.
func (t *Target) Memory() int {
	size := SecretMemory + textCopies*t.Secret.Size + EntryMemory*(len(t.Secret.Hold)+len(t.Secret.LeftOut))
	size += EntryMemory * len(t.Secret.Groups)
	for _, part := range t.Parts() {
		for _, e := range part.Entries {
			size += EntryMemory + textCopies*(len(e.Variable)+len(e.Alias))
		}
	}
	return size
}

// Refused returns a Secret that is left as it is, as Syncer does not keep what its
// definition asks for: it exceeds a limit.
func (t *Target) Refused(why string) *Target {
	s := t.Secret
	return &Target{Key: t.Key, Faults: t.Faults, Secret: &Secret{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, Missing: s.Missing, Unread: s.Unread,
		HoldAll: true, Faults: []string{ConjurMapKey + ": " + why},
	}}
}

// TooManyEntries says what to do about a Secret with too many entries.
func TooManyEntries(n int) string {
	return fmt.Sprintf("the Secret would hold %d variables, and may hold %d; divide them among several Secrets", n, MaxEntries)
}
