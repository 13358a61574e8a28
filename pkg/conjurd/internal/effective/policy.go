// Package effective writes the effective policy of a branch in the policy language.
// The result does not depend on the texts that were loaded.
package effective

import (
	"cmp"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Statement is one item of a policy: a tag and its fields.
type Statement struct {
	Tag    string // without "!"
	Fields []Field
}

// Field is an attribute. Value is a string, a []string, a Ref, a []Ref, a
// []Annotation or, for the body, a []Statement.
type Field struct {
	Name  string
	Value any
}

// Ref is a tagged id.
type Ref struct{ Kind, ID string }

// Annotation is a name and a text.
type Annotation struct{ Name, Value string }

// Of returns the policy with the id, as far as the roles may see it. It includes
// nested policies down to the depth.
func Of(tx *store.Tx, roles store.Roles, account, id string, depth int) ([]Statement, error) {
	w := newWriter(tx, roles, account)
	if id == policy.RootPolicy {
		return w.body("", depth)
	}
	st, err := w.policy(id, parent(id), depth)
	return []Statement{st}, err
}

// kindOrder is the order of the kinds in a body, as in the genuine server.
var kindOrder = []string{"user", "policy", "variable", "webservice", "host", "layer", "host_factory", "group"}

// writer knows which policy contains each object.
type writer struct {
	tx       *store.Tx
	account  string
	visible  map[string]bool         // full name of an object → true
	children map[string][]policy.Ref // policy id, "" for root → contents, by kind and id
	dashed   map[string]string       // policy id in users' names → policy id
}

func newWriter(tx *store.Tx, roles store.Roles, account string) *writer {
	w := &writer{tx: tx, account: account, visible: map[string]bool{}, children: map[string][]policy.Ref{}, dashed: map[string]string{}}
	policies := map[string]bool{}
	for id := range tx.Objects(account + ":policy:") {
		p := policy.Ref(id).ID()
		policies[p] = true
		w.dashed[strings.ReplaceAll(p, "/", "-")] = p
	}
	for id, o := range tx.Objects(account + ":") {
		if !tx.Visible(roles, id, o) {
			continue
		}
		w.visible[id] = true
		ref := policy.Ref(id)
		path := w.path(ref)
		if path == policy.RootPolicy && ref.Kind() == "policy" || path == "admin" && ref.Kind() == "user" {
			continue
		}
		in := parent(path)
		for in != "" && !policies[in] {
			in = parent(in)
		}
		w.children[in] = append(w.children[in], ref)
	}
	for _, list := range w.children {
		slices.SortStableFunc(list, func(a, b policy.Ref) int {
			return cmp.Or(cmp.Compare(slices.Index(kindOrder, a.Kind()), slices.Index(kindOrder, b.Kind())), strings.Compare(a.ID(), b.ID()))
		})
	}
	return w
}

// path returns the position of an object in the tree. The position of a user is
// encoded in its name.
func (w *writer) path(ref policy.Ref) string {
	id := ref.ID()
	if ref.Kind() != "user" {
		return id
	}
	if i := strings.LastIndexByte(id, '@'); i >= 0 {
		if p, ok := w.dashed[id[i+1:]]; ok {
			return p + "/" + id[:i]
		}
	}
	return id
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}

// relative shortens a path inside the policy.
func relative(path, in string) string {
	if in == "" {
		return path
	}
	return strings.TrimPrefix(path, in+"/")
}

// ref names an object from inside a policy: by a relative path if the policy
// contains it, otherwise from the root.
func (w *writer) ref(r policy.Ref, in string) Ref {
	path := w.path(r)
	if in == "" || strings.HasPrefix(path, in+"/") {
		return Ref{tagOf(r.Kind()), relative(path, in)}
	}
	return w.absolute(r)
}

// absolute names an object from the root.
func (w *writer) absolute(r policy.Ref) Ref { return Ref{tagOf(r.Kind()), "/" + w.path(r)} }

// tagOf returns the tag of a kind: "host-factory" for "host_factory".
func tagOf(kind string) string { return strings.ReplaceAll(kind, "_", "-") }

// body writes the contents of a policy: first objects, then memberships, then
// privileges.
func (w *writer) body(in string, depth int) ([]Statement, error) {
	out := []Statement{}
	for _, r := range w.children[in] {
		var st Statement
		var err error
		if r.Kind() == "policy" {
			if depth == 0 {
				continue
			}
			st, err = w.policy(r.ID(), in, depth-1)
		} else {
			st, err = w.record(r, in)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	grants, err := w.grants(in)
	return slices.Concat(out, grants, w.permits(in)), err
}

func (w *writer) policy(id, in string, depth int) (Statement, error) {
	st, err := w.record(policy.MakeRef(w.account, "policy", id), in)
	if err != nil {
		return st, err
	}
	body, err := w.body(id, depth)
	st.Fields = append(st.Fields, Field{"body", body})
	return st, err
}

// record writes a declaration.
func (w *writer) record(r policy.Ref, in string) (Statement, error) {
	o, err := w.tx.Object(string(r))
	if err != nil || o == nil {
		return Statement{}, err
	}
	st := Statement{tagOf(r.Kind()), []Field{{"id", relative(w.path(r), in)}}}
	if o.Owner != string(policy.Namespace{Account: w.account, Policy: in}.Owner()) {
		owner := policy.Ref(o.Owner)
		st.Fields = append(st.Fields, Field{"owner", w.absolute(owner)})
	}
	if len(o.Layers) > 0 {
		var layers []Ref
		for _, l := range o.Layers {
			layers = append(layers, w.ref(policy.Ref(l), in))
		}
		st.Fields = append(st.Fields, Field{"layers", layers})
	}
	var notes []Annotation
	for _, a := range o.Annotations {
		if attr, ok := strings.CutPrefix(a.Name, "conjur/"); ok && r.Kind() == "variable" && (attr == "kind" || attr == "mime_type") {
			st.Fields = append(st.Fields, Field{attr, a.Value})
			continue
		}
		notes = append(notes, Annotation{a.Name, a.Value})
	}
	if len(notes) > 0 {
		st.Fields = append(st.Fields, Field{"annotations", notes})
	}
	cred, err := w.tx.Credentials(string(r))
	if cred != nil && len(cred.RestrictedTo) > 0 {
		st.Fields = append(st.Fields, Field{"restricted_to", cred.RestrictedTo})
	}
	return st, err
}

// grants writes the memberships of the policy's roles. It omits those that follow
// from ownership or from the layers of a host factory.
func (w *writer) grants(in string) ([]Statement, error) {
	var out []Statement
	for _, r := range w.children[in] {
		members, err := w.tx.Members(string(r))
		if err != nil {
			return nil, err
		}
		var refs []Ref
		for _, m := range members {
			o, err := w.tx.Object(m.Member)
			if err != nil {
				return nil, err
			}
			if !m.Ownership && w.visible[m.Member] && (o == nil || !slices.Contains(o.Layers, string(r))) {
				refs = append(refs, w.absolute(policy.Ref(m.Member)))
			}
		}
		if len(refs) > 0 {
			out = append(out, Statement{"grant", []Field{{"role", w.ref(r, in)}, {"members", refs}}})
		}
	}
	return out, nil
}

// permits writes the privileges on the policy's resources, by resource and
// role.
func (w *writer) permits(in string) []Statement {
	var out []Statement
	for _, r := range w.children[in] {
		byRole := map[string][]string{}
		var roles []string
		for _, p := range w.tx.Permissions(string(r)) {
			if byRole[p.Role] == nil {
				roles = append(roles, p.Role)
			}
			byRole[p.Role] = append(byRole[p.Role], p.Privilege)
		}
		slices.Sort(roles)
		for _, role := range roles {
			out = append(out, Statement{"permit", []Field{
				{"role", w.ref(policy.Ref(role), in)}, {"privileges", byRole[role]}, {"resource", w.ref(r, in)},
			}})
		}
	}
	return out
}
