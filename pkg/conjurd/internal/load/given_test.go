package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

func TestDeletesComeLast(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !variable v\n- !host h\n- !policy p\n")
	res := w.load(Update, "root", "- !delete { record: !variable v }\n- !variable v\n- !host new\n- !delete { record: !host new }\n"+
		"- !revoke { role: !host h, member: !policy p }\n- !grant { role: !host h, member: !policy p }\n")
	if w.exists("dev:variable:v") || w.exists("dev:host:new") || len(res.Created) != 0 {
		t.Errorf("what is deleted in the text that declares it is there, %+v", res)
	}
	w.view(func(tx *store.Tx) {
		if got := tx.MembersOf("dev:host:h"); !slices.Equal(got, []string{"dev:user:admin"}) {
			t.Errorf("its members are %v", got)
		}
	})
	if _, err := w.try(Update, "p", "dev:user:admin", "- !delete { record: !policy }\n"); err == nil || !strings.Contains(err.Error(), "cannot be deleted by a load into it") {
		t.Errorf("a branch that deletes itself: %v", err)
	}
}

// A membership, permission or annotation is that of the policy that it was
// first loaded into.
func TestLoadsLeaveWhatOthersGave(t *testing.T) {
	w := newWorld(t)
	const relations = `
- !grant { role: !group mine/g, member: !member { role: !host mine/h, admin: true } }
- !permit { role: !host mine/h, privileges: [read], resource: !variable mine/v }
- !variable { id: mine/v, annotations: { a: root }, owner: !policy mine }
`
	w.load(Update, "root", "- !policy { id: mine, body: [ !group g, !host h ] }\n"+relations)
	same := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(relations, "mine/", ""), "a: root", "a: mine"), "!policy mine", "!host h")
	check := func(when string, there bool) {
		t.Helper()
		w.view(func(tx *store.Tx) {
			m, ok, err := tx.Membership("dev:group:mine/g", "dev:host:mine/h", false)
			if err != nil || ok != there || ok && (!m.Admin || m.Policy != "dev:policy:root") {
				t.Errorf("%s: the membership is %+v, %v, %v", when, m, ok, err)
			}
			by, ok := tx.GivenBy(store.Permission{Resource: "dev:variable:mine/v", Privilege: "read", Role: "dev:host:mine/h"})
			if ok != there || ok && by != "dev:policy:root" {
				t.Errorf("%s: the permission is of %q, %v", when, by, ok)
			}
			o, err := tx.Object("dev:variable:mine/v")
			if err != nil || o.Annotation("a") != "root" || o.Owner != "dev:policy:mine" {
				t.Errorf("%s: the variable is %+v, %v", when, o, err)
			}
		})
	}
	w.load(Update, "mine", strings.Replace(same, "admin: true", "admin: false", 1)+"- !variable { id: v2, owner: !host h }\n")
	check("after an update by another policy", true)
	w.load(Update, "mine", "- !variable { id: v, owner: !host h }\n")
	check("after another owner by another policy", true)
	w.load(Replace, "mine", "[]")
	check("after a replacement of another policy", true)
	undo := "- !deny { role: !host h, privileges: [read], resource: !variable v }\n- !revoke { role: !group g, member: !host h }\n"
	w.load(Update, "mine", undo)
	check("after a deny and a revoke by another policy", true)
	w.load(Update, "root", strings.NewReplacer("!host h", "!host mine/h", "!variable v", "!variable mine/v", "!group g", "!group mine/g").Replace(undo))
	check("after a deny and a revoke by its own policy", false)
}

// An owner may be granted what it owns; ending that leaves the ownership.
func TestOwnersAreMembersTwice(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !policy { id: app, body: [ !group g ] }\n- !group ops\n")
	list := func() (out []store.Membership) {
		w.view(func(tx *store.Tx) {
			var err error
			if out, err = tx.Members("dev:group:app/g"); err != nil {
				t.Fatal(err)
			}
		})
		return out
	}
	owned := store.Membership{Role: "dev:group:app/g", Member: "dev:policy:app", Admin: true, Ownership: true, Policy: "dev:policy:root"}
	granted := store.Membership{Role: "dev:group:app/g", Member: "dev:policy:app", Policy: "dev:policy:app"}
	w.load(Update, "app", "- !grant { role: !group g, member: !policy /app }\n")
	if got := list(); !slices.Equal(got, []store.Membership{granted, owned}) {
		t.Errorf("members are %+v", got)
	}
	for range 2 {
		w.load(Update, "app", "- !revoke { role: !group g, member: !policy /app }\n")
		if got := list(); !slices.Equal(got, []store.Membership{owned}) {
			t.Errorf("members are %+v", got)
		}
	}
}

// What a deleted policy gave on things that outlive it goes with it.
func TestDeletedPoliciesTakeBackWhatTheyGave(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !policy app\n- !host outsider\n- !variable { id: app/v, owner: !user admin }\n- !group { id: app/g, owner: !user admin }\n")
	w.load(Update, "app", "- !permit { role: !host /outsider, privileges: [read], resource: !variable v }\n"+
		"- !grant { role: !group g, member: !host /outsider }\n- !variable { id: v, annotations: { a: b } }\n")
	w.load(Update, "root", "- !delete { record: !policy app }\n")
	w.view(func(tx *store.Tx) {
		o, err := tx.Object("dev:variable:app/v")
		if err != nil || o == nil || len(o.Annotations) != 0 || len(tx.Permissions("dev:variable:app/v")) != 0 || len(tx.MembersOf("dev:group:app/g")) != 1 {
			t.Errorf("the variable is %+v, %v", o, err)
		}
	})
}

// A deletion takes along what the deleted object owns. Outside of the branch, the
// caller needs a right over that too.
func TestDeletionsReachOtherBranchesOnlyWithARight(t *testing.T) {
	for _, c := range []struct {
		mode Mode
		role string
		text string
		ok   bool
	}{
		{Update, "dev:user:eve", "- !delete { record: !group g }\n", false},
		{Replace, "dev:user:eve", "- !variable v\n", false},
		{Replace, "dev:user:eve", "- !group g\n", true},
		{Update, "dev:user:eve", "- !delete { record: !policy sub }\n", true},
		{Update, "dev:user:admin", "- !delete { record: !group g }\n", true},
		{Replace, "dev:user:admin", "- !variable v\n", true},
	} {
		w := newWorld(t)
		w.load(Add, "root", "- !user eve\n- !policy tp\n")
		w.load(Add, "tp", "- !group g\n- !policy { id: sub, body: [ !variable v ] }\n")
		w.load(Add, "root", "- !policy { id: other, owner: !group tp/g, body: [ !variable v ] }\n")
		_, err := w.try(c.mode, "tp", c.role, c.text)
		if (err == nil) != c.ok || !c.ok && !strings.Contains(err.Error(), "Policy 'other' is outside of Policy 'tp'") {
			t.Errorf("mode %d by %s: %s: %v", c.mode, c.role, c.text, err)
		}
		if kept := w.exists("dev:variable:other/v"); !c.ok && !kept {
			t.Errorf("mode %d by %s: %s: the other branch is gone", c.mode, c.role, c.text)
		}
	}
}
