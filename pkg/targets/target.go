// Package targets says what must be kept in sync: the targets and the entries in
// them.
package targets

import (
	"cmp"
	"io/fs"
	"strings"
)

// Key is a target's name in the queue, in logs and in metrics: its kind, a
// slash and its name, such as "file/db".
type Key string

// FileKey is the Key of the file target that the secret group named group
// defines.
func FileKey(group string) Key { return Key("file/" + group) }

// KubeSecretKey is the Key of the target that is a Kubernetes Secret.
func KubeSecretKey(namespace, name string) Key { return Key("secret/" + namespace + "/" + name) }

// Target is one thing kept in sync, with all that decides its content. A
// Target is not changed once it is in a records.Set.
type Target struct {
	Key Key
	// Group is the name that the target's annotations carry as a suffix; also
	// the name under which its template appears in errors.
	Group string
	// Entries in the order in which they were written; formats keep it.
	Entries []Entry
	Format  Format
	// Template is used with FormatTemplate only.
	Template Template
	File     File
	// Faults are the problems of what the configuration says of the target, each
	// with its place. A target with any is left as it is.
	Faults []string
	// Secret is set for a target that is a Kubernetes Secret: each of its
	// Entries makes the data key that is its alias, and Group, Format,
	// Template and File are not used.
	Secret *Secret
	// Expanded is what Expand added: the variables that are in the target
	// although no entry names them. Nil before, and for a target without an
	// entry that stands for all variables.
	Expanded map[string]bool
	// Overrides are, once Expand has settled which entries read them, the
	// variables of this node's own, each with the general one in whose place it
	// is. Nil before, and for a target without any.
	Overrides map[string]string
	// Watched are those of Overrides that no entry reads although they are
	// listed, as they had no value for this identity: they may get one.
	Watched []string
}

// Variables lists the ids of the target's variables, each once, in the order
// of the entries, those of a Secret's groups last. An entry that stands for
// all variables adds none.
func (t *Target) Variables() []string {
	seen := make(map[string]bool, len(t.Entries))
	ids := make([]string, 0, len(t.Entries))
	for _, part := range t.Parts() {
		for _, e := range part.Entries {
			if !seen[e.Variable] && !e.All() {
				seen[e.Variable] = true
				ids = append(ids, e.Variable)
			}
		}
	}
	return ids
}

// Parts lists what has entries: the target itself, and the groups of a Secret.
func (t *Target) Parts() []*Target {
	if t.Secret == nil {
		return []*Target{t}
	}
	return append([]*Target{t}, t.Secret.Groups...)
}

// Entry maps an alias, the name inside the target, to a variable.
type Entry struct {
	Alias string `json:"alias"`
	// Variable is the variable's id without account and kind, with the
	// group's policy path already in front.
	Variable    string      `json:"variable"`
	ContentType ContentType `json:"contentType"`
	// Path is where the entry's file is in a folder of files, slash-separated; "":
	// at its Alias. Mode is the file's, 0: that of the group's files.
	Path string      `json:"path,omitempty"`
	Mode fs.FileMode `json:"-"`
	// Override is the variable of this node's own that is read in the place of
	// Variable if there is one; "": none is looked for, or it is settled.
	Override string `json:"nodeVariable,omitempty"`
	// General is, where Variable is this node's own, the one in whose place it
	// is.
	General string `json:"-"`
}

// All reports whether the entry stands for every variable that the identity may
// read, or, when its Variable is "prefix/*", for all below that prefix.
func (e Entry) All() bool {
	return e.Alias == "*" && (e.Variable == "*" || strings.HasSuffix(e.Variable, "/*"))
}

// FilePath returns where the entry's file is in a folder of files.
func (e Entry) FilePath() string { return cmp.Or(e.Path, e.Alias) }

// ContentType says how a variable's value becomes an entry's value.
type ContentType string

// The content types of the secret group and conjur-map syntax.
const (
	ContentText   ContentType = "text"   // as it is; what the empty ContentType means too
	ContentBase64 ContentType = "base64" // decoded from base64
)

// The content types of sets of versions, which one variable holds whole. In the
// map of a Secret and in a folder the alias is a pattern, such as "*" or "db-*",
// whose asterisk stands for the names below.
const (
	// ContentKeys: each valid version as ID.PART, the primary as ID.PART.primary.
	ContentKeys ContentType = "keys"
	// ContentCredential: the primary's parts by name, those of the one before as
	// PART.old while it is valid.
	ContentCredential ContentType = "credential"
)

// Set reports whether the entry's variable is a set of versions.
func (e Entry) Set() bool {
	return e.ContentType == ContentKeys || e.ContentType == ContentCredential
}

// Format is how a target's entries are laid out.
type Format string

// The formats of conjur.org/secret-file-format that the Secrets Provider has.
const (
	FormatYAML       Format = "yaml"
	FormatJSON       Format = "json"
	FormatDotenv     Format = "dotenv"
	FormatBash       Format = "bash"
	FormatProperties Format = "properties"
	FormatTemplate   Format = "template"
)

// More formats, which it does not have.
const (
	FormatJavaProperties Format = "java-properties" // as java.util.Properties reads it
	FormatEnvFile        Format = "env-file"        // as docker run --env-file reads it

	// A JSON Web Key Set of the keys of sets: with the private ones, or with the
	// public ones only.
	FormatJWKS       Format = "jwks"
	FormatJWKSPublic Format = "jwks-public"

	// FormatDirectory makes a target a folder with one file for each entry,
	// named by its alias.
	FormatDirectory Format = "directory"
)

// Template says where a target's template text is: inline, or else in a file
// of the templates folder, or else in a ConfigMap. The zero Template is none
// at all.
type Template struct {
	// Inline is the text itself, as it stands in an annotation.
	Inline string
	// File is the name, below the templates folder, of the file that holds
	// the text and is read at every sync.
	File string
	// ConfigMap is where in the cluster the text is.
	ConfigMap ConfigMapKey
}

// ConfigMapKey names one key of a ConfigMap's data. The zero ConfigMapKey is
// none.
type ConfigMapKey struct {
	Namespace, Name, Key string
}

// Secret is a Kubernetes Secret that is a target, and what more its data has
// than the target's entries make.
type Secret struct {
	Namespace, Name string
	// UID is of the very object that the definition was read from: another of
	// that name may be defined otherwise. "": not from one that is there.
	UID string
	// Groups each make the value of one data key, which is the group's name.
	// They have no Key and no File.
	Groups []*Target
	// Create: a Secret that is missing is made, with the Type; "" is Opaque.
	Create bool
	Type   string
	// Faults are what is wrong with the definition, each in words that say
	// where. What is faulty is not in Entries and Groups.
	Faults []string
	// Hold lists, in ascending order, the data keys that are named by what is
	// faulty: they stay as they are. HoldAll says that it is not known which
	// these are, so that nothing goes that the definition does not name.
	Hold    []string
	HoldAll bool
	// LeftOut are, once the target is expanded, the variables that have no
	// data key although an entry stands for all, each in words that say why.
	LeftOut []string
	// Size is the bytes of the definition that the Secret itself has.
	Size int
	// Missing: there is no such Secret, and so nothing is known of what it
	// should hold but for what the configuration says.
	Missing bool
	// Unread says why the Secret cannot be read; nothing is done with it, as it
	// is not known what it should hold. "": it was read, or is Missing.
	Unread string
	// Restart lists the workloads of the namespace that are restarted when
	// the data have changed, each as "deployment/name".
	Restart []string
	// PullFor lists the service accounts of the namespace whose images are
	// pulled with it.
	PullFor []string
}

// File is where and how a file target lands.
type File struct {
	// Path is slash-separated, clean, and relative to the secrets folder,
	// which it never leaves. Empty: the target goes to no file, but to the
	// environment of a command.
	Path string
	// Mode holds permission bits only.
	Mode fs.FileMode
}
