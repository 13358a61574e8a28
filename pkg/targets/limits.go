package targets

import "fmt"

// The limits of one Kubernetes Secret, which any user of its namespace may write. Only
// the Secret that exceeds a limit fails.
const (
	// MaxDefinition limits the total size in bytes of a Secret's map and of its
	// annotations that define its content.
	MaxDefinition = 256 << 10
	// MaxEntries limits the variables of a Secret, including those from a wildcard.
	MaxEntries = 8000
	// MaxNames limits the workloads, and the service accounts, that a Secret may name.
	MaxNames = 50
)

// MaxTemplateText bounds the text of any template, in bytes.
const MaxTemplateText = 1 << 20

// The limits of the templates in the ConfigMaps of one namespace.
const (
	// MaxTemplates limits the templates that all targets of a namespace use, and
	// MaxTemplate the bytes of each.
	MaxTemplates = 32
	MaxTemplate  = 64 << 10
)

// The upper bounds of the memory in bytes that Syncer needs for one Kubernetes Secret.
// One is for the Secret without its definition. One is for each entry without its texts.
// A test measures them, and a namespace has a budget of them.
const (
	SecretMemory = 9 << 9
	EntryMemory  = 1 << 10
)

// textCopies is an upper bound of the copies of a definition's texts in memory. The Secret
// has the original. The parsed entries, and the maps that find targets, may copy parts.
const textCopies = 3

// Memory is an upper bound of the memory in bytes that Syncer needs for a Kubernetes
// Secret, without the templates in ConfigMaps.
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

// Refused returns a target that leaves the Secret unchanged. Its definition exceeds a
// limit, so Syncer does not keep the definition.
func (t *Target) Refused(why string) *Target {
	s := t.Secret
	return &Target{Key: t.Key, Faults: t.Faults, Secret: &Secret{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, Missing: s.Missing, Unread: s.Unread,
		HoldAll: true, Faults: []Fault{{ConjurMapKey, why}},
	}}
}

// TooManyEntries returns the solution for a Secret with too many entries.
func TooManyEntries(n int) string {
	return fmt.Sprintf("the Secret would hold at least %d variables, and may hold %d; divide them among several Secrets", n, MaxEntries)
}
