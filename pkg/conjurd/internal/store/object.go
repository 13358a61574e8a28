package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"
)

// Object is a role, a resource, or both, as a policy declares it.
type Object struct {
	CreatedAt   time.Time    `json:"created_at"`
	Owner       string       `json:"owner"`
	Policy      string       `json:"policy,omitempty"` // that declared it; "" for initial objects
	Annotations []Annotation `json:"annotations,omitempty"`
	Order       uint64       `json:"order,omitempty"`    // order of creation among all objects
	Layers      []string     `json:"layers,omitempty"`   // of a host factory: layers for its hosts
	Disabled    bool         `json:"disabled,omitempty"` // for an authenticator's webservice
}

// Annotation is a name and a text, with the policy that set it.
type Annotation struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Policy string `json:"policy"`
}

// Annotation returns the text for the name, or "" if there is none.
func (o *Object) Annotation(name string) string {
	for _, a := range o.Annotations {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Object returns the object with the id, or nil if there is none.
func (t *Tx) Object(id string) (*Object, error) {
	o, ok, err := get[Object](t.objects, []byte(id))
	if !ok {
		return nil, err
	}
	return &o, nil
}

// Annotation returns the text of the object's annotation with the name, or "" if there is
// none. It decodes only objects that contain the name, which JSON must not escape.
func (t *Tx) Annotation(id, name string) (string, error) {
	if !bytes.Contains(t.objects.Get([]byte(id)), []byte(name)) {
		return "", nil
	}
	o, err := t.Object(id)
	if o == nil || err != nil {
		return "", err
	}
	return o.Annotation(name), nil
}

// Exists reports whether the object exists, without decoding it.
func (t *Tx) Exists(id string) bool { return t.objects.Get([]byte(id)) != nil }

// PutObject creates or changes the object with the id.
func (t *Tx) PutObject(id string, o *Object) error {
	old, err := t.Object(id)
	if err != nil {
		return err
	}
	if old != nil {
		o.Order, err = old.Order, t.unlink(id, old)
	} else {
		o.Order = t.objects.next()
	}
	return errors.Join(err,
		t.owned.Put(key(o.Owner, id), nil),
		t.declared.Put(key(o.Policy, id), nil),
		put(t.objects, []byte(id), o))
}

func (t *Tx) unlink(id string, o *Object) error {
	return errors.Join(t.owned.Delete(key(o.Owner, id)), t.declared.Delete(key(o.Policy, id)))
}

// Owned lists the objects that the role owns.
func (t *Tx) Owned(role string) []string { return keys(t.owned, prefix(role)) }

// Declared lists the objects that the policy declared.
func (t *Tx) Declared(policy string) []string { return keys(t.declared, prefix(policy)) }

// Objects returns every object whose id begins with start, such as
// "account:variable:", in the order of the ids. The transaction must not write
// meanwhile.
func (t *Tx) Objects(start string) iter.Seq2[string, *Object] {
	return func(yield func(string, *Object) bool) {
		for k, v := range scan(t.objects, []byte(start)) {
			var o Object
			// Yield an undecodable object as empty, so that nobody may see it.
			_ = json.Unmarshal(v, &o)
			if !yield(start+k, &o) {
				return
			}
		}
	}
}

// DeleteObjects removes the objects with everything that depends on them: objects
// that they own or declared, memberships, permissions, credentials and values. It
// also removes grants and permissions that a deleted policy gave elsewhere.
func (t *Tx) DeleteObjects(ids ...string) error {
	policies, factories := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		if err := t.deleteObject(id, policies, factories); err != nil {
			return err
		}
	}
	if len(factories) > 0 {
		if err := t.deleteTokens(func(f FactoryToken) bool { return factories[f.Factory] }); err != nil {
			return err
		}
	}
	if len(policies) == 0 {
		return nil
	}
	return t.Forget(policies, true)
}

// deleteObject records in policies each object that had a text loaded into it, and in
// factories each host factory.
func (t *Tx) deleteObject(id string, policies, factories map[string]bool) error {
	o, err := t.Object(id)
	if o == nil || err != nil {
		return err
	}
	// Delete the object itself first, so that an object that owns itself does not
	// recurse.
	if err := t.objects.Delete([]byte(id)); err != nil {
		return err
	}
	if err := t.unlink(id, o); err != nil {
		return err
	}
	for _, child := range append(t.Owned(id), t.Declared(id)...) {
		if err := t.deleteObject(child, policies, factories); err != nil {
			return err
		}
	}
	for range scan(t.policies, prefix(id)) {
		policies[id] = true
		break
	}
	for _, clear := range []func(string) error{t.clearMembers, t.clearPermissions, t.clearValues, t.clearPolicies} {
		if err := clear(id); err != nil {
			return err
		}
	}
	if strings.Contains(id, ":host_factory:") {
		factories[id] = true
	}
	return t.credentials.Delete([]byte(id))
}

// cutLast splits the rest of a key at its last zero byte.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, 0)
	return s[:i], s[i+1:]
}

// Forget removes everything that the policies granted, permitted and annotated,
// including on objects of other policies. It keeps memberships that follow from
// ownership, unless owners is true.
func (t *Tx) Forget(policies map[string]bool, owners bool) error {
	for _, step := range []func(map[string]bool) error{
		func(p map[string]bool) error { return t.forgetMemberships(p, owners) }, t.forgetPermissions, t.forgetAnnotations,
	} {
		if err := step(policies); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) forgetMemberships(policies map[string]bool, owners bool) error {
	for _, k := range keys(t.members, nil) {
		role, member := cutLast(k)
		l, err := t.links(role, member)
		if err != nil {
			return err
		}
		granted := l.granted != nil && policies[l.granted.Policy]
		owned := owners && l.owned != nil && policies[l.owned.Policy]
		if granted {
			l.granted = nil
		}
		if owned {
			l.owned = nil
		}
		if granted || owned {
			if err := t.putLinks(role, member, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tx) forgetPermissions(policies map[string]bool) error {
	var gone []Permission
	for k, policy := range scan(t.permissions, nil) {
		if policies[string(policy)] {
			rest, role := cutLast(k)
			resource, privilege := cutLast(rest)
			gone = append(gone, Permission{Resource: resource, Privilege: privilege, Role: role})
		}
	}
	for _, p := range gone {
		if err := t.DeletePermission(p); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) forgetAnnotations(policies map[string]bool) error {
	changed := map[string]*Object{}
	for id, o := range t.Objects("") {
		var kept []Annotation
		for _, a := range o.Annotations {
			if !policies[a.Policy] {
				kept = append(kept, a)
			}
		}
		if len(kept) < len(o.Annotations) {
			o.Annotations = kept
			changed[id] = o
		}
	}
	for id, o := range changed {
		if err := t.PutObject(id, o); err != nil {
			return err
		}
	}
	return nil
}

// PolicyVersion is one text that was loaded into a policy.
type PolicyVersion struct {
	Version    uint64    `json:"version"`
	CreatedAt  time.Time `json:"created_at"`
	Text       string    `json:"policy_text"`
	SHA256     string    `json:"policy_sha256"`
	FinishedAt time.Time `json:"finished_at"`
	ClientIP   string    `json:"client_ip"`
	Role       string    `json:"role"`
}

// policyVersionLimit bounds the number of stored texts of a policy, as in the
// genuine server.
const policyVersionLimit = 20

// PolicyVersions lists the stored texts, oldest first.
func (t *Tx) PolicyVersions(policy string) ([]PolicyVersion, error) {
	var out []PolicyVersion
	for _, v := range scan(t.policies, prefix(policy)) {
		var p PolicyVersion
		if err := json.Unmarshal(v, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// AddPolicyVersion stores p under the next number and returns that number.
func (t *Tx) AddPolicyVersion(policy string, p PolicyVersion) (uint64, error) {
	last := uint64(0)
	for k := range scan(t.policies, prefix(policy)) {
		last = binary.BigEndian.Uint64([]byte(k))
	}
	p.Version = last + 1
	if p.Version > policyVersionLimit {
		if err := t.policies.Delete(valueKey(policy, p.Version-policyVersionLimit)); err != nil {
			return 0, err
		}
	}
	return p.Version, put(t.policies, valueKey(policy, p.Version), p)
}

func (t *Tx) clearPolicies(id string) error {
	for _, k := range keys(t.policies, prefix(id)) {
		if err := t.policies.Delete(append(prefix(id), k...)); err != nil {
			return err
		}
	}
	return nil
}
