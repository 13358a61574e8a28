package policy

import "strings"

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

// Resolve gives the full name of the kind and id of a text. A leading slash
// makes the id absolute, ".." goes up one level, and a user gets its policy
// behind an @: "ops/bob" is the user "bob@ops". Without an id, it is that of
// the policy: a webservice is declared so.
func (n Namespace) Resolve(kind, id string) Ref {
	if id == "" {
		return MakeRef(n.Account, kind, n.Policy)
	}
	path, absolute := strings.CutPrefix(id, "/")
	if !absolute && n.Policy != "" {
		path = n.Policy + "/" + id
	}
	path = climb(path)
	if i := strings.LastIndexByte(path, '/'); kind == "user" && i >= 0 {
		path = path[i+1:] + "@" + strings.ReplaceAll(path[:i], "/", "-")
	}
	return MakeRef(n.Account, kind, path)
}

// climb applies the ".." segments of an id.
func climb(id string) string {
	if !strings.Contains(id, "..") {
		return id
	}
	var out []string
	for seg := range strings.SplitSeq(id, "/") {
		switch {
		case seg != "..":
			out = append(out, seg)
		case len(out) > 0:
			out = out[:len(out)-1]
		}
	}
	return strings.Join(out, "/")
}

// MakeRef joins the three parts of a full name.
func MakeRef(account, kind, id string) Ref { return Ref(account + ":" + kind + ":" + id) }

// Split gives the parts of a full name; ok is false when there are not three.
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

// IsRole tells whether things of the kind are roles, which can be granted and
// have privileges.
func IsRole(kind string) bool {
	switch kind {
	case "user", "host", "group", "layer", "policy":
		return true
	}
	return false
}
