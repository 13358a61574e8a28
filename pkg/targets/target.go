// Package targets defines what to keep in sync: the targets and their entries.
package targets

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Key is a target's name in the queue, in logs and in metrics: its kind, a slash and its
// name, such as "file/db".
type Key string

// FileKey is the Key of the file target of the secret group named group.
func FileKey(group string) Key { return Key("file/" + group) }

// KubeSecretKey is the Key of the target for a Kubernetes Secret.
func KubeSecretKey(namespace, name string) Key { return Key("secret/" + namespace + "/" + name) }

// Secret returns the namespace and the name of a Kubernetes Secret's Key; both are empty
// for a file.
func (k Key) Secret() (namespace, name string) {
	if text, ok := strings.CutPrefix(string(k), "secret/"); ok {
		namespace, name, _ = strings.Cut(text, "/")
	}
	return namespace, name
}

// Namespace returns the namespace of a Kubernetes Secret's Key, or "" for a file.
func (k Key) Namespace() string {
	namespace, _ := k.Secret()
	return namespace
}

// Target is one object to keep in sync, with everything that determines its content. A
// Target in a records.Set must not be changed.
type Target struct {
	Key Key
	// Group is the suffix of the target's annotations. It is also the name of its
	// template in errors.
	Group string
	// Entries are in the order of the definition, and formats keep this order.
	Entries []Entry
	Format  Format
	// DotenvReaders must all read each value. They are used with FormatDotenv only.
	DotenvReaders []string
	// Template is used with FormatTemplate only.
	Template Template
	File     File
	// Faults are the problems of the target's configuration, each with its place. A
	// target with faults stays unchanged.
	Faults []string
	// Secret is set for a Kubernetes Secret. Each of the target's Entries makes the data
	// key that is its alias. Group, Format, Template and File are not used.
	Secret *Secret
	// Expanded contains the variables that Expand added, which no entry names. It is nil
	// before Expand, and for a target without an entry that stands for all variables.
	Expanded map[string]bool
	// Overrides contains the general variable by the id of each node-specific variable that
	// may replace it. It is nil before ChooseVariables, and for a target without such
	// variables.
	Overrides map[string]string
	// Watched are those of Overrides that exist in Conjur, but that no entry reads. They
	// had no value for this identity, but may receive one.
	Watched []string
	used    map[string]bool // those of Overrides that an entry reads
}

// Variables lists the ids of the target's variables, each once, in the order of the
// entries. Those of a Secret's groups are last. An entry that stands for all variables
// adds none.
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

// Parts lists the parts with entries: the target itself, and the groups of a Secret.
func (t *Target) Parts() []*Target {
	if t.Secret == nil {
		return []*Target{t}
	}
	return append([]*Target{t}, t.Secret.Groups...)
}

// Entry maps an alias, the name inside the target, to a variable.
type Entry struct {
	Alias string `json:"alias"`
	// Variable is the variable's id without account and kind, with the group's policy
	// path as its prefix.
	Variable    string      `json:"variable"`
	ContentType ContentType `json:"contentType"`
	// Path is the slash-separated path of the entry's file in a folder of files; "" means
	// its Alias. Mode is the mode of the file; 0 means the mode of the group's files.
	Path string      `json:"path,omitempty"`
	Mode fs.FileMode `json:"-"`
	// Override is the node-specific variable to read instead of Variable, if it exists.
	// It is "" if there is none, or the choice has been made.
	Override string `json:"nodeVariable,omitempty"`
	// General is the general variable that Variable replaces, if Variable is
	// node-specific.
	General string `json:"-"`
}

// All reports whether the entry stands for every variable that the identity may read. If
// its Variable is "prefix/*", it stands for all below that prefix.
func (e Entry) All() bool {
	return e.Alias == "*" && (e.Variable == "*" || strings.HasSuffix(e.Variable, "/*"))
}

// FilePath returns the path of the entry's file in a folder of files.
func (e Entry) FilePath() string { return cmp.Or(e.Path, e.Alias) }

// ContentType determines how to convert a variable's value to an entry's value.
type ContentType string

// The content types of the secret group and conjur-map syntax.
const (
	ContentText   ContentType = "text"   // unchanged; the empty ContentType means the same
	ContentBase64 ContentType = "base64" // decoded from base64
)

// The content types of sets of versions. One variable contains a whole set. In the map of
// a Secret and in a folder, the alias is a pattern, such as "*" or "db-*". Its asterisk
// stands for the names below.
const (
	// ContentKeys contains each valid version as ID.PART, and the primary as
	// ID.PART.primary.
	ContentKeys ContentType = "keys"
	// ContentCredential contains the primary's parts by name. While the previous version
	// is valid, it also contains its parts as PART.old.
	ContentCredential ContentType = "credential"
)

// IsSet reports whether the entry's variable is a set of versions.
func (e Entry) IsSet() bool {
	return e.ContentType == ContentKeys || e.ContentType == ContentCredential
}

// Format is the layout of a target's entries.
type Format string

// The formats of conjur.org/secret-file-format in the Secrets Provider.
const (
	FormatYAML       Format = "yaml"
	FormatJSON       Format = "json"
	FormatDotenv     Format = "dotenv"
	FormatBash       Format = "bash"
	FormatProperties Format = "properties"
	FormatTemplate   Format = "template"
)

// The formats that only Syncer has.
const (
	FormatJavaProperties Format = "java-properties" // the syntax of java.util.Properties
	FormatEnvFile        Format = "env-file"        // the syntax of docker run --env-file
	FormatKubernetesEnv  Format = "kubernetes-env"  // the syntax of a Pod's valueFrom.fileKeyRef

	// A JSON Web Key Set of the keys of sets: with the private keys, or only with the
	// public ones.
	FormatJWKS       Format = "jwks"
	FormatJWKSPublic Format = "jwks-public"

	// FormatDirectory makes a target a folder with one file for each entry,
	// named by its alias.
	FormatDirectory Format = "directory"
)

// Template is the location of a target's template text: inline, otherwise in a file of
// the templates folder, otherwise in a ConfigMap. The zero Template means no template.
type Template struct {
	// Inline is the text itself, as in an annotation.
	Inline string
	// File is the name of the text's file below the templates folder. Syncer reads it at
	// every sync.
	File string
	// ConfigMap is the location of the text in the cluster.
	ConfigMap ConfigMapKey
}

// ConfigMapKey names one key of a ConfigMap's data. The zero ConfigMapKey names none.
type ConfigMapKey struct {
	Namespace, Name, Key string
}

// Secret is a target that is a Kubernetes Secret, with the parts of its data that the
// target's entries do not make.
type Secret struct {
	Namespace, Name string
	// UID is the UID of the object with the definition, because another object of that
	// name may have another definition. It is "" if the definition is not from an
	// existing object.
	UID string
	// Groups each make the value of one data key, which is the group's name.
	// They have no Key and no File.
	Groups []*Target
	// Create permits creating a missing Secret, with the Type; "" means Opaque.
	Create bool
	Type   string
	// Faults are the problems of the definition. Entries and Groups do not contain the
	// faulty parts.
	Faults []Fault
	// Warnings say which parts of the definition have no effect.
	Warnings []Fault
	// Hold lists, in ascending order, the data keys of faulty parts, which stay
	// unchanged. HoldAll means that these keys are unknown. Then Syncer removes no data
	// key that the definition does not name.
	Hold    []string
	HoldAll bool
	// LeftOut lists, once the target is expanded, the variables that an entry stands for
	// but that have no data key, each with the reason.
	LeftOut []string
	// Size is the size of the Secret's own definition in bytes.
	Size int
	// Missing means that the Secret does not exist. Then only the configuration defines
	// its content.
	Missing bool
	// Unread says why the Secret cannot be read. Syncer does not change the Secret,
	// because its wanted content is unknown. It is "" if the Secret was read or is
	// Missing.
	Unread string
	// Restart lists the workloads of the namespace to restart after a change of the data,
	// each as "deployment/name".
	Restart []string
	// PullFor lists the service accounts of the namespace that use the Secret as an image
	// pull secret.
	PullFor []string
}

// File is the path and the mode of a file target.
type File struct {
	// Path is slash-separated, clean, and relative to the secrets folder, and never
	// outside it. If empty, the target has no file; a command gets it as environment
	// variables.
	Path string
	// Mode contains only permission bits.
	Mode fs.FileMode
}

const (
	// MaxFileName limits each name in the path of a file, in bytes. It is the limit of
	// Linux file systems.
	MaxFileName = 255
	// MaxFolders limits the folders in the path of an entry's file.
	MaxFolders = 64
)

// ChooseVariables returns a copy of the target in which each entry reads either its general
// variable or its Override. The entry reads the Override if use says so. Otherwise the
// Override becomes one of Watched if watch says so.
func (t *Target) ChooseVariables(use, watch func(id string) bool) *Target {
	chosen := *t
	chosen.Entries, chosen.Overrides, chosen.Watched = slices.Clone(t.Entries), map[string]string{}, nil
	chosen.used = map[string]bool{}
	for i, e := range t.Entries {
		if e.Override == "" {
			continue
		}
		override := e.Override
		_, seen := chosen.Overrides[override]
		chosen.Overrides[override] = e.Variable
		e.Override = ""
		switch {
		case use(override):
			e.Variable, e.General = override, e.Variable
			chosen.used[override] = true
		case !seen && watch(override):
			chosen.Watched = append(chosen.Watched, override)
		}
		chosen.Entries[i] = e
	}
	return &chosen
}

// Uses reports whether an entry reads the node-specific variable now.
func (t *Target) Uses(override string) bool { return t.used[override] }

// Expiry is the earliest expiry of a certificate in a target, and the variable with the
// certificate. The zero Expiry means that the target has no certificate.
type Expiry struct {
	At       time.Time
	Variable string
}

// First returns the earlier one of the two.
func (e Expiry) First(other Expiry) Expiry {
	if e.At.IsZero() || !other.At.IsZero() && other.At.Before(e.At) {
		return other
	}
	return e
}

// Fault is a problem of a Secret's definition, or only a doubt about it.
type Fault struct {
	Place string // an annotation, or ConjurMapKey
	Why   string // and what to do
}

// String returns the place, a colon, and the reason.
func (f Fault) String() string { return f.Place + ": " + f.Why }

// Texts returns the texts of faults.
func Texts(faults []Fault) (texts []string) {
	for _, f := range faults {
		texts = append(texts, f.String())
	}
	return texts
}

// DefaultFileName is the default name of a group's file or folder.
func DefaultFileName(group string, format Format) string {
	switch format {
	case FormatTemplate:
		return group + ".out"
	case FormatDirectory:
		return group
	}
	return group + "." + string(format)
}

// Formats lists all formats; the first is the default.
func Formats() []Format {
	return []Format{
		FormatYAML, FormatJSON, FormatDotenv, FormatBash, FormatProperties, FormatTemplate,
		FormatJavaProperties, FormatEnvFile, FormatKubernetesEnv, FormatDirectory, FormatJWKS, FormatJWKSPublic,
	}
}
