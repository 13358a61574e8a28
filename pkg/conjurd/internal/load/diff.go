package load

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Diff lists the changes of a load. Each list is in the order of the ids.
type Diff struct{ Created, Before, After, Deleted []Item }

// Item shows an object in a dry run, in the genuine server's format.
type Item struct {
	Identifier  string              `json:"identifier"`
	ID          string              `json:"id"`
	Type        string              `json:"type"`
	Owner       string              `json:"owner"`
	Policy      *string             `json:"policy"`
	Permissions map[string][]string `json:"permissions,omitzero"` // privilege → resources; for roles
	Permitted   map[string][]string `json:"permitted,omitzero"`   // privilege → roles; not for roles
	Annotations map[string]string   `json:"annotations"`
	*RoleItem
	hidden bool // from the caller, who sees only that there is one
}

// MarshalJSON reduces a hidden item to its kind.
func (it Item) MarshalJSON() ([]byte, error) {
	if it.hidden {
		return json.Marshal(struct {
			Identifier string `json:"identifier"`
			Type       string `json:"type"`
		}{it.Identifier, it.Type})
	}
	type plain Item
	return json.Marshal(plain(it))
}

// RoleItem holds the fields that only roles have.
type RoleItem struct {
	Members      []string `json:"members"`
	Memberships  []string `json:"memberships"`
	RestrictedTo []string `json:"restricted_to"`
}

// Preview applies the statements and returns the changes. Use it in store.Try.
func Preview(tx *store.Tx, r Request, st *policy.Statements) (*Diff, error) {
	before, err := items(tx, r.Account)
	if err != nil {
		return nil, err
	}
	seenBefore := visible(tx, r)
	if _, err := Apply(tx, r, st); err != nil {
		return nil, err
	}
	after, err := items(tx, r.Account)
	if err != nil {
		return nil, err
	}
	d, err := compare(before, after)
	if err != nil {
		return nil, err
	}
	seenAfter := visible(tx, r)
	for list, seen := range map[*[]Item]map[string]bool{&d.Created: seenAfter, &d.After: seenAfter, &d.Before: seenBefore, &d.Deleted: seenBefore} {
		for i := range *list {
			(*list)[i].redact(seen)
		}
	}
	return d, nil
}

// visible returns the objects that the caller of the load may see.
func visible(tx *store.Tx, r Request) map[string]bool {
	seen, roles := map[string]bool{}, tx.RolesOf(r.Role)
	for id, o := range tx.Objects(r.Account + ":") {
		if tx.Visible(roles, id, o) {
			seen[id] = true
		}
	}
	return seen
}

// redact removes the ids of objects that the caller must not see, as the genuine
// server does.
func (it *Item) redact(seen map[string]bool) {
	one := func(id string) string {
		if id == "" || seen[id] {
			return id
		}
		ref := policy.Ref(id)
		return string(policy.MakeRef(ref.Account(), ref.Kind(), "[REDACTED]"))
	}
	all := func(ids []string) {
		for i, id := range ids {
			ids[i] = one(id)
		}
	}
	it.hidden = !seen[it.Identifier]
	it.Identifier, it.Owner = one(it.Identifier), one(it.Owner)
	if it.Policy != nil {
		in := one(*it.Policy)
		it.Policy = &in
	}
	for _, ids := range it.Permissions {
		all(ids)
	}
	for _, ids := range it.Permitted {
		all(ids)
	}
	if it.RoleItem != nil {
		all(it.Members)
		all(it.Memberships)
	}
}

func compare(before, after map[string]Item) (*Diff, error) {
	d := &Diff{}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		old, ok := before[id]
		if !ok {
			d.Created = append(d.Created, after[id])
			continue
		}
		a, err1 := json.Marshal(old)
		b, err2 := json.Marshal(after[id])
		if err1 != nil || err2 != nil {
			return nil, err1
		}
		if string(a) != string(b) {
			d.Before = append(d.Before, old)
			d.After = append(d.After, after[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[id]; !ok {
			d.Deleted = append(d.Deleted, before[id])
		}
	}
	return d, nil
}

// items describes all objects of the account, by id. Like the genuine server, it
// omits host factories.
func items(tx *store.Tx, account string) (map[string]Item, error) {
	out := map[string]Item{}
	for id, o := range tx.Objects(account + ":") {
		if policy.Ref(id).Kind() == "host_factory" {
			continue
		}
		it, err := describe(tx, id, o)
		if err != nil {
			return nil, err
		}
		out[id] = it
	}
	return out, nil
}

func describe(tx *store.Tx, id string, o *store.Object) (Item, error) {
	ref := policy.Ref(id)
	it := Item{Identifier: id, ID: ref.ID(), Type: ref.Kind(), Owner: o.Owner, Annotations: map[string]string{}}
	if o.Policy != "" {
		it.Policy = &o.Policy
	}
	for _, a := range o.Annotations {
		it.Annotations[a.Name] = a.Value
	}
	if !policy.IsRole(it.Type) {
		it.Permitted = map[string][]string{}
		for _, p := range tx.Permissions(id) {
			it.Permitted[p.Privilege] = append(it.Permitted[p.Privilege], p.Role)
		}
		return it, nil
	}
	it.Permissions = map[string][]string{}
	for _, p := range tx.PrivilegesOf(id) {
		it.Permissions[p.Privilege] = append(it.Permissions[p.Privilege], p.Resource)
	}
	role := &RoleItem{Members: tx.MembersOf(id), Memberships: tx.MembershipsOf(id), RestrictedTo: []string{}}
	it.RoleItem = role
	cred, err := tx.Credentials(id)
	if cred != nil {
		role.RestrictedTo = append(role.RestrictedTo, cred.RestrictedTo...)
	}
	role.Members, role.Memberships = notNil(role.Members), notNil(role.Memberships)
	return it, err
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
