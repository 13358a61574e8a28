package policy

import (
	"slices"
	"strings"
)

// Namespace is where ids of a text are relative to: an account and the id of
// a policy, which is empty for the root policy.
type Namespace struct{ Account, Policy string }

// RootPolicy is the id of the policy that holds all others.
const RootPolicy = "root"

// NewNamespace is the namespace of the branch that a text is loaded into.
func NewNamespace(account, branch string) Namespace {
	if branch == RootPolicy {
		branch = ""
	}
	return Namespace{account, branch}
}

// Owner is who owns what the text names no owner for: the policy itself, and
// in the root policy the user admin.
func (n Namespace) Owner() Ref {
	if n.Policy == "" {
		return MakeRef(n.Account, "user", "admin")
	}
	return MakeRef(n.Account, "policy", n.Policy)
}

// join puts an id behind the policy that it is in. Without an id it is that of
// the policy; an absolute one, with a leading slash, stays as it is.
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

// climb makes a path relative to the root and applies its ".." segments; false
// when they lead out of it. Only roles that own something, get a privilege or
// become members may be named so: anywhere else ".." is part of an id.
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

// Standing returns the name of a thing of that kind that is declared without
// an id, and so stands for the policy.
func (n Namespace) Standing(kind string) Ref { return n.ref(kind, n.Policy) }

// ref returns the full name for a path from the root. A user gets its policy
// behind an @: "ops/bob" is the user "bob@ops".
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

// Split returns the parts of a full name; ok is false when there are not three.
// The id may contain colons.
func (r Ref) Split() (account, kind, id string, ok bool) {
	account, rest, ok1 := strings.Cut(string(r), ":")
	kind, id, ok2 := strings.Cut(rest, ":")
	return account, kind, id, ok1 && ok2
}

// Kind is the middle part.
func (r Ref) Kind() string { _, k, _, _ := r.Split(); return k }

// Account is the first part.
func (r Ref) Account() string { a, _, _, _ := r.Split(); return a }

// ID is the last part.
func (r Ref) ID() string { _, _, id, _ := r.Split(); return id }

// Title names the thing in an error: "Variable 'a/b' not found in account 'dev'".
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

// NotFound is the server's sentence for something that is not there.
func (r Ref) NotFound() string {
	return r.Title() + " not found in account '" + r.Account() + "'"
}

// IsRole reports whether things of the kind are roles, which can be granted and
// have privileges.
func IsRole(kind string) bool {
	switch kind {
	case "user", "host", "group", "layer", "policy", "host_factory":
		return true
	}
	return false
}
