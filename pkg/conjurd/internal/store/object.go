package store

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"
)

// Object is a role, a resource, or both: what a policy declares.
type Object struct {
	CreatedAt   time.Time    `json:"created_at"`
	Owner       string       `json:"owner"`
	Policy      string       `json:"policy,omitempty"` // that declared it; "" for what is made with the account
	Annotations []Annotation `json:"annotations,omitempty"`
	Order       uint64       `json:"order,omitempty"`    // of being made, among all objects
	Layers      []string     `json:"layers,omitempty"`   // of the hosts that a host factory makes
	Disabled    bool         `json:"disabled,omitempty"` // an authenticator's webservice that is switched off
}

// Annotation is a name and a text, and the policy that they come from.
type Annotation struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Policy string `json:"policy"`
}

// Annotation returns the text under the name, "" when there is none.
func (o *Object) Annotation(name string) string {
	for _, a := range o.Annotations {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Object returns what id names; nil when there is no such thing.
func (t *Tx) Object(id string) (*Object, error) {
	o, ok, err := get[Object](t.objects, []byte(id))
	if !ok {
		return nil, err
	}
	return &o, nil
}

// Exists is Object for those who do not need it.
func (t *Tx) Exists(id string) bool { return t.objects.Get([]byte(id)) != nil }

// PutObject makes or changes the object called id.
func (t *Tx) PutObject(id string, o *Object) error {
	old, err := t.Object(id)
	if err != nil {
		return err
	}
	if old != nil {
		o.Order, err = old.Order, t.unlink(id, old)
	} else {
		o.Order, err = t.objects.NextSequence()
	}
	return errors.Join(err,
		t.owned.Put(key(o.Owner, id), nil),
		t.declared.Put(key(o.Policy, id), nil),
		put(t.objects, []byte(id), o))
}

func (t *Tx) unlink(id string, o *Object) error {
	return errors.Join(t.owned.Delete(key(o.Owner, id)), t.declared.Delete(key(o.Policy, id)))
}

// Owned lists what the role owns.
func (t *Tx) Owned(role string) []string { return keys(t.owned, prefix(role)) }

// Declared lists what the policy declared.
func (t *Tx) Declared(policy string) []string { return keys(t.declared, prefix(policy)) }

// Objects returns every object whose id begins with start, such as
// "account:variable:", in the order of the ids. The transaction must not
// write meanwhile.
func (t *Tx) Objects(start string) iter.Seq2[string, *Object] {
	return func(yield func(string, *Object) bool) {
		for k, v := range scan(t.objects, []byte(start)) {
			var o Object
			// What does not decode is shown empty: nobody may see it then.
			_ = json.Unmarshal(v, &o)
			if !yield(start+k, &o) {
				return
			}
		}
	}
}

// DeleteObjects removes the objects with all that hangs on them: what they
// own or declared, memberships, permissions, credentials, values. What a
// deleted policy granted or permitted elsewhere goes with it.
func (t *Tx) DeleteObjects(ids ...string) error {
	gone := map[string]bool{}
	for _, id := range ids {
		if err := t.deleteObject(id, gone); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return t.Forget(gone, true)
}

// deleteObject notes in policies what had a text loaded into it.
func (t *Tx) deleteObject(id string, policies map[string]bool) error {
	o, err := t.Object(id)
	if o == nil || err != nil {
		return err
	}
	// First the object itself: an owner of itself must not come round again.
	if err := t.objects.Delete([]byte(id)); err != nil {
		return err
	}
	if err := t.unlink(id, o); err != nil {
		return err
	}
	for _, child := range append(t.Owned(id), t.Declared(id)...) {
		if err := t.deleteObject(child, policies); err != nil {
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
		if err := t.clearTokens(id); err != nil {
			return err
		}
	}
	return t.credentials.Delete([]byte(id))
}

// cutLast splits a key's rest at its last zero byte.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, 0)
	return s[:i], s[i+1:]
}
