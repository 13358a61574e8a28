package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRolesAreTransitive(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *Tx) error {
		for _, id := range []string{"h", "g1", "g2", "g3", "other"} {
			if err := tx.PutObject(id, &Object{Owner: "x"}); err != nil {
				return err
			}
		}
		for _, m := range []Membership{{Role: "g1", Member: "h"}, {Role: "g2", Member: "g1"}, {Role: "g3", Member: "g2"}, {Role: "g1", Member: "g3"}} {
			if err := tx.PutMembership(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.View(func(tx *Tx) error {
		if got := slices.Sorted(maps.Keys(tx.RolesOf("h"))); !slices.Equal(got, []string{"g1", "g2", "g3", "h"}) {
			t.Errorf("roles of h are %v", got)
		}
		if got := slices.Sorted(maps.Keys(tx.Holders("g3"))); !slices.Equal(got, []string{"g1", "g2", "g3", "h"}) {
			t.Errorf("holders of g3 are %v", got)
		}
		if got := tx.RolesOf("nobody"); got != nil {
			t.Errorf("roles of nobody are %v", got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAllowedAndVisible(t *testing.T) {
	s, _ := open(t)
	o := &Object{Owner: "owner"}
	update(t, s, func(tx *Tx) error {
		if err := tx.PutPermission(Permission{"v", "read", "reader", "p"}); err != nil {
			return err
		}
		// A resource whose name begins like the other's is another one.
		return tx.PutPermission(Permission{"v/w", "execute", "reader", "p"})
	})
	if err := s.View(func(tx *Tx) error {
		for _, c := range []struct {
			role, privilege  string
			allowed, visible bool
		}{
			{"owner", "execute", true, true}, {"owner", "anything", true, true},
			{"reader", "read", true, true}, {"reader", "execute", false, true},
			{"other", "read", false, false},
		} {
			roles := Roles{c.role: true}
			if got := tx.Allowed(roles, c.privilege, "v", o); got != c.allowed {
				t.Errorf("%s may %s: %t", c.role, c.privilege, got)
			}
			if got := tx.Visible(roles, "v", o); got != c.visible {
				t.Errorf("%s sees it: %t", c.role, got)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestDeletingTakesAllThatHangsOnIt(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *Tx) error {
		now := time.Now()
		for id, owner := range map[string]string{"p": "admin", "v": "p", "h": "p", "owned-by-h": "h", "other": "admin"} {
			if err := tx.PutObject(id, &Object{CreatedAt: now, Owner: owner, Policy: "root"}); err != nil {
				return err
			}
		}
		if err := tx.PutObject("declared", &Object{Owner: "admin", Policy: "p"}); err != nil {
			return err
		}
		if _, err := tx.SetValue("v", []byte("x")); err != nil {
			return err
		}
		if err := tx.PutCredentials("h", &Credentials{APIKey: []byte("k")}); err != nil {
			return err
		}
		if err := tx.PutMembership(Membership{Role: "other", Member: "h"}); err != nil {
			return err
		}
		if err := tx.PutPermission(Permission{"other", "read", "h", "root"}); err != nil {
			return err
		}
		_, err := tx.AddPolicyVersion("p", PolicyVersion{Text: "[]"})
		return err
	})
	update(t, s, func(tx *Tx) error { return tx.DeleteObjects("p") })
	if err := s.View(func(tx *Tx) error {
		for _, id := range []string{"p", "v", "h", "owned-by-h", "declared"} {
			if tx.Exists(id) {
				t.Errorf("%s is still there", id)
			}
		}
		if !tx.Exists("other") {
			t.Error("something else was deleted")
		}
		_, version, _ := tx.Value("v")
		cred, _ := tx.Credentials("h")
		texts, _ := tx.PolicyVersions("p")
		if version != 0 || cred != nil || len(texts) != 0 || len(tx.MembersOf("other")) != 0 || len(tx.Permissions("other")) != 0 {
			t.Error("something that hung on it is still there")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAnOwnerOfItselfCanBeDeleted(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *Tx) error { return tx.PutObject("a", &Object{Owner: "a"}) })
	update(t, s, func(tx *Tx) error { return tx.DeleteObjects("a") })
}

// The second index of each relation says the same as the first, whatever was
// done.
func TestIndexesAgree(t *testing.T) {
	s, _ := open(t)
	ids := []string{"a", "b", "a/b", "c", "d"}
	id := rapid.SampledFrom(ids)
	rapid.Check(t, func(r *rapid.T) {
		err := s.Update(func(tx *Tx) error {
			for range rapid.IntRange(1, 20).Draw(r, "steps") {
				if err := randomStep(r, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
		if err := s.View(func(tx *Tx) error { checkIndexes(r, tx); return nil }); err != nil {
			r.Fatal(err)
		}
	})
}

func randomStep(r *rapid.T, tx *Tx, id *rapid.Generator[string]) error {
	a, b, c := id.Draw(r, "a"), id.Draw(r, "b"), id.Draw(r, "c")
	switch rapid.IntRange(0, 8).Draw(r, "op") {
	case 0, 1:
		return tx.PutObject(a, &Object{Owner: b, Policy: c})
	case 2:
		return tx.DeleteObjects(a)
	case 3:
		return tx.PutMembership(Membership{Role: a, Member: b, Policy: c, Ownership: a == c})
	case 4:
		return tx.DeleteMembership(a, b, b == c)
	case 5:
		return tx.PutPermission(Permission{a, "read", b, c})
	case 6:
		return tx.DeletePermission(Permission{Resource: a, Privilege: "read", Role: b})
	case 7:
		return tx.Forget(map[string]bool{a: true}, false)
	}
	return tx.Forget(map[string]bool{a: true}, true)
}

func checkIndexes(r *rapid.T, tx *Tx) {
	forward, backward := map[string]bool{}, map[string]bool{}
	for k := range scan(tx.members, nil) {
		role, member := cutLast(k)
		forward[role+" "+member] = true
	}
	for k := range scan(tx.memberships, nil) {
		member, role := cutLast(k)
		backward[role+" "+member] = true
	}
	if !reflect.DeepEqual(forward, backward) {
		r.Errorf("members %v, memberships %v", forward, backward)
	}
	clear(forward)
	clear(backward)
	for k := range scan(tx.permissions, nil) {
		rest, role := cutLast(k)
		forward[fmt.Sprint(role, rest)] = true
	}
	for k := range scan(tx.privileges, nil) {
		rest, privilege := cutLast(k)
		role, resource := cutLast(rest)
		backward[fmt.Sprint(role, resource+"\x00"+privilege)] = true
	}
	if !reflect.DeepEqual(forward, backward) {
		r.Errorf("permissions %v, privileges %v", forward, backward)
	}
	clear(forward)
	clear(backward)
	for id, o := range tx.Objects("") {
		forward["owned "+o.Owner+" "+id] = true
		forward["declared "+o.Policy+" "+id] = true
	}
	for name, b := range map[string]*bucket{"owned": tx.owned, "declared": tx.declared} {
		for k := range scan(b, nil) {
			parent, id := cutLast(k)
			backward[name+" "+parent+" "+id] = true
		}
	}
	if !reflect.DeepEqual(forward, backward) {
		r.Errorf("objects %v, indexes %v", forward, backward)
	}
}
