// Package policy parses Conjur's policy language: YAML whose tags give the type of
// each item. It turns a text into statements with resolved ids. It does not know
// the state of a server.
package policy

import (
	"slices"
	"strings"
)

// Statements holds the statements of one policy text, by effect.
type Statements struct {
	Records  []Record
	Grants   []Grant
	Permits  []Permit
	Revokes  []Grant
	Denies   []Permit
	Deletes  []Ref
	Warnings []string // for the answer; the text is valid nevertheless
	mentions map[Ref]place
}

// NotFound returns the error for a reference to an object that does not exist.
func (s *Statements) NotFound(ref Ref) *Error {
	return &Error{Message: ref.NotFound(), mention: s.mentions[ref]}
}

// Deleting reports whether the text removes anything, which requires an update.
func (s *Statements) Deleting() bool {
	return len(s.Revokes)+len(s.Denies)+len(s.Deletes) > 0
}

// Ref names a role or resource: "account:kind:id".
type Ref string

// Record declares a role, a resource, or an object that is both.
type Record struct {
	ID           Ref
	Owner        Ref
	Annotations  []Annotation
	RestrictedTo []string // networks; users and hosts only
	PublicKeys   []string // users only
	Layers       []Ref    // host factories only: layers of the hosts that they create
}

// Annotation is a name and a text on a record.
type Annotation struct{ Name, Value string }

// Grant creates the membership of each member in each role. In Revokes it ends the
// membership.
type Grant struct {
	Roles   []Ref
	Members []Member
}

// Member is the receiving side of a Grant.
type Member struct {
	Role  Ref
	Admin bool // may grant the role to others
}

// Permit grants privileges on resources to roles. In Denies it removes them.
type Permit struct {
	Roles      []Ref
	Privileges []string
	Resources  []Ref
}

// Namespace is the base of relative ids in a text: an account, and the id of a
// policy. The id is empty for the root policy.
type Namespace struct{ Account, Policy string }

// RootPolicy is the id of the policy that contains all others.
const RootPolicy = "root"

// NewNamespace returns the namespace of the branch to load into.
func NewNamespace(account, branch string) Namespace {
	if branch == RootPolicy {
		branch = ""
	}
	return Namespace{account, branch}
}

// Owner returns the default owner: the policy itself, or the user admin in the root
// policy.
func (n Namespace) Owner() Ref {
	if n.Policy == "" {
		return MakeRef(n.Account, "user", "admin")
	}
	return MakeRef(n.Account, "policy", n.Policy)
}

// join appends an id to the id of its policy. An empty id yields the policy's own
// id. An absolute id, with a leading slash, is unchanged.
func (n Namespace) join(id string) string {
	switch {
	case isBlank(id):
		return n.Policy
	case n.Policy == "" || isAbsolute(id):
		return id
	}
	return n.Policy + "/" + id
}

func isBlank(id string) bool    { return strings.TrimSpace(id) == "" }
func isAbsolute(id string) bool { return strings.HasPrefix(id, "/") }

// climb makes a path relative to the root and resolves its ".." segments. It
// returns false if they lead above the root. Only owners, members and holders of
// privileges may be named this way. In other places ".." is part of an id.
func climb(path string) (string, bool) {
	var out []string
	for seg := range strings.SplitSeq(strings.TrimRight(strings.TrimPrefix(path, "/"), "/"), "/") {
		if seg != ".." {
			out = append(out, seg)
			continue
		}
		if len(out) == 0 {
			return "", false
		}
		out = out[:len(out)-1]
	}
	path = strings.Join(out, "/")
	return path, path != ""
}

// hasClimb reports whether a segment of the path is "..".
func hasClimb(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }

// Standing returns the name of an object of the kind that is declared without an
// id. Such an object has the id of its policy.
func (n Namespace) Standing(kind string) Ref { return n.ref(kind, n.Policy) }

// ref returns the full name for a path from the root. The name of a user ends in @
// and its policy: "ops/bob" is the user "bob@ops".
func (n Namespace) ref(kind, path string) Ref {
	if kind == "user" {
		path = strings.TrimRight(path, "/")
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			path = path[i+1:] + "@" + strings.ReplaceAll(path[:i], "/", "-")
		}
	}
	return MakeRef(n.Account, kind, path)
}

// MakeRef joins the three parts of a full name.
func MakeRef(account, kind, id string) Ref { return Ref(account + ":" + kind + ":" + id) }

// Split returns the parts of a full name. ok is false unless there are three. The
// id may contain colons.
func (r Ref) Split() (account, kind, id string, ok bool) {
	account, rest, ok1 := strings.Cut(string(r), ":")
	kind, id, ok2 := strings.Cut(rest, ":")
	return account, kind, id, ok1 && ok2
}

// Kind returns the middle part.
func (r Ref) Kind() string { _, k, _, _ := r.Split(); return k }

// Account returns the first part.
func (r Ref) Account() string { a, _, _, _ := r.Split(); return a }

// ID returns the last part.
func (r Ref) ID() string { _, _, id, _ := r.Split(); return id }

// Title names the object in an error: "Variable 'a/b' not found in account 'dev'".
func (r Ref) Title() string {
	_, kind, id, _ := r.Split()
	return titleKind(kind) + " '" + id + "'"
}

func titleKind(kind string) string {
	if kind == "" {
		return ""
	}
	return strings.ToUpper(kind[:1]) + strings.ReplaceAll(kind[1:], "_", " ")
}

// NotFound returns the server's message for a missing object.
func (r Ref) NotFound() string {
	return r.Title() + " not found in account '" + r.Account() + "'"
}

// IsRole reports whether objects of the kind are roles. Roles can have members and
// privileges.
func IsRole(kind string) bool {
	switch kind {
	case "user", "host", "group", "layer", "policy", "host_factory":
		return true
	}
	return false
}
