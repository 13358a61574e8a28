package load

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a store with an account.
type world struct {
	t testing.TB
	s *store.Store
}

var tokenKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "data"), store.Options{Key: bytes.Repeat([]byte{1}, store.KeySize), Create: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Update(func(tx *store.Tx) error { return Account(tx, "dev", tokenKey(), noon) }); err != nil {
		t.Fatal(err)
	}
	return &world{t, s}
}

func (w *world) try(mode Mode, branch, role, text string) (res *Result, err error) {
	r := Request{Account: "dev", Branch: branch, Mode: mode, Text: []byte(text), Role: role, Now: noon}
	st, err := r.Parse()
	if err != nil {
		return nil, err
	}
	err = w.s.Update(func(tx *store.Tx) error {
		res, err = Apply(tx, r, st)
		return err
	})
	return res, err
}

func (w *world) load(mode Mode, branch, text string) *Result {
	w.t.Helper()
	res, err := w.try(mode, branch, "dev:user:admin", text)
	if err != nil {
		w.t.Fatalf("load into %s: %v", branch, err)
	}
	return res
}

func (w *world) view(f func(*store.Tx)) {
	w.t.Helper()
	if err := w.s.View(func(tx *store.Tx) error { f(tx); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exists(id string) (yes bool) {
	w.t.Helper()
	w.view(func(tx *store.Tx) { yes = tx.Exists(id) })
	return yes
}

// allows reports whether the role may do it.
func (w *world) allows(role, privilege, resource string) (yes bool) {
	w.t.Helper()
	w.view(func(tx *store.Tx) {
		o, err := tx.Object(resource)
		if err != nil || o == nil {
			w.t.Fatalf("%s: %v", resource, err)
		}
		yes = tx.Allowed(tx.RolesOf(role), privilege, resource, o)
	})
	return yes
}

const app = `
- !policy
  id: app
  body:
  - !variable password
  - !host web
  - !group readers
  - !grant { role: !group readers, member: !host web }
  - !permit { role: !group readers, privileges: [read, execute], resource: !variable password }
`

// A user's name may have an @ of its own.
func TestUsersWithAnAt(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !policy sand\n- !policy other\n- !policy a@b\n")
	w.load(Update, "sand", "- !user al@x\n")
	w.load(Update, "a@b", "- !user al\n")
	for _, id := range []string{"dev:user:al@x@sand", "dev:user:al@a@b"} {
		if !w.exists(id) {
			t.Errorf("%s is not there", id)
		}
	}
}

func TestAddMakesRolesWithKeysOnce(t *testing.T) {
	w := newWorld(t)
	res := w.load(Add, "root", app)
	if len(res.Created) != 1 || res.Created[0].Role != "dev:host:app/web" || len(res.Created[0].APIKey) != 56 || res.Version != 1 {
		t.Errorf("result %+v", res)
	}
	if !w.allows("dev:host:app/web", "execute", "dev:variable:app/password") {
		t.Error("the host may not read by its group")
	}
	if w.allows("dev:host:app/web", "update", "dev:variable:app/password") {
		t.Error("the host may set")
	}
	if !w.allows("dev:user:admin", "update", "dev:variable:app/password") {
		t.Error("the admin owns not all")
	}
	if res = w.load(Add, "root", app); len(res.Created) != 0 || res.Version != 2 {
		t.Errorf("second result %+v", res)
	}
}

func TestFailedLoadLeavesNothing(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{
		"- !variable a\n- !grant { role: !group nope, member: !user admin }\n",
		"- !variable a\n- !permit { role: !user admin, privileges: [read], resource: !variable nope }\n",
		"- !variable { id: a, owner: !user nope }\n",
		"- !variable a\n- !delete { record: !policy nope }\n- !grant { role: !user admin, member: !host nope }\n",
	} {
		_, err := w.try(Update, "root", "dev:user:admin", text)
		var bad *policy.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "'nope' not found in account 'dev'") {
			t.Errorf("%s: %v", text, err)
		}
		if w.exists("dev:variable:a") {
			t.Errorf("%s: something was loaded", text)
		}
	}
}

func TestOwnersMayComeLater(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !variable { id: v, owner: !group late }\n- !permit { role: !host h, privileges: [read], resource: !variable v }\n- !group late\n- !host h\n")
	if !w.allows("dev:host:h", "read", "dev:variable:v") || !w.allows("dev:group:late", "execute", "dev:variable:v") {
		t.Error("what comes later in the text has no effect")
	}
}

func TestAddDoesNotChangeOrDelete(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !group g\n- !variable { id: v, annotations: { a: old } }\n")
	w.load(Add, "root", "- !variable { id: v, owner: !group g, annotations: { a: new, b: new } }\n")
	w.view(func(tx *store.Tx) {
		o, _ := tx.Object("dev:variable:v")
		if o.Annotation("a") != "old" || o.Annotation("b") != "new" || o.Owner != "dev:user:admin" {
			t.Errorf("the variable is %+v", o)
		}
	})
	if _, err := w.try(Add, "root", "dev:user:admin", "- !delete { record: !variable v }\n"); !errors.Is(err, ErrDeletion) {
		t.Errorf("deleting: %v", err)
	}
	if _, err := w.try(Add, "root", "dev:user:admin", " \n"); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty text: %v", err)
	}
}

func TestUpdateChangesAndDeletes(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", app+"- !group g\n- !host { id: h, restricted_to: 10.0.0.1, annotations: { a: old, keep: x } }\n")
	w.load(Update, "root", "- !host { id: h, owner: !group g, annotations: { a: new } }\n")
	w.view(func(tx *store.Tx) {
		o, _ := tx.Object("dev:host:h")
		c, _ := tx.Credentials("dev:host:h")
		if o.Annotation("a") != "new" || o.Annotation("keep") != "x" || o.Owner != "dev:group:g" || !slices.Equal(c.RestrictedTo, []string{"10.0.0.1/32"}) {
			t.Errorf("the host is %+v, %v", o, c.RestrictedTo)
		}
		if got := tx.MembersOf("dev:host:h"); !slices.Equal(got, []string{"dev:group:g"}) {
			t.Errorf("its members are %v", got)
		}
	})
	w.load(Update, "root", "- !revoke { role: !group app/readers, member: !host app/web }\n")
	if w.allows("dev:host:app/web", "execute", "dev:variable:app/password") {
		t.Error("a revoked member may still read")
	}
	w.load(Update, "root", "- !deny { role: !group app/readers, privileges: [execute], resource: !variable app/password }\n")
	if w.allows("dev:group:app/readers", "execute", "dev:variable:app/password") || !w.allows("dev:group:app/readers", "read", "dev:variable:app/password") {
		t.Error("denying one privilege does not do just that")
	}
	w.load(Update, "root", "- !delete { record: !policy app }\n- !delete { record: !variable never-was }\n")
	if w.exists("dev:variable:app/password") || w.exists("dev:host:app/web") {
		t.Error("what was in a deleted policy is still there")
	}
}

func TestReplace(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", "- !policy app\n- !group outsider\n- !host h\n- !grant { role: !group outsider, member: !host h }\n")
	w.load(Add, "app", "- !variable { id: a, annotations: { x: y } }\n- !variable b\n- !host web\n- !permit { role: !host web, privileges: [execute], resource: !variable a }\n")
	if err := w.s.Update(func(tx *store.Tx) error { _, err := tx.SetValue("dev:variable:app/a", []byte("x")); return err }); err != nil {
		t.Fatal(err)
	}
	res := w.load(Replace, "app", "- !variable a\n- !variable c\n- !host web\n")
	if len(res.Created) != 0 {
		t.Errorf("a kept host is new: %+v", res.Created)
	}
	if w.exists("dev:variable:app/b") || !w.exists("dev:variable:app/c") {
		t.Error("not what the text says")
	}
	if w.allows("dev:host:app/web", "execute", "dev:variable:app/a") {
		t.Error("an omitted permission is still there")
	}
	w.view(func(tx *store.Tx) {
		v, version, _ := tx.Value("dev:variable:app/a")
		o, _ := tx.Object("dev:variable:app/a")
		if string(v) != "x" || version != 1 || len(o.Annotations) != 0 {
			t.Errorf("the kept variable is %q, version %d, %+v", v, version, o)
		}
		if got := tx.MembersOf("dev:host:app/web"); !slices.Equal(got, []string{"dev:policy:app"}) {
			t.Errorf("members of the kept host are %v", got)
		}
		if len(tx.MembersOf("dev:group:outsider")) != 2 {
			t.Error("another policy's grant is gone")
		}
	})
	w.load(Replace, "app", "[]")
	if w.exists("dev:variable:app/a") || !w.exists("dev:policy:app") {
		t.Error("replacing with nothing does not empty the branch")
	}
}

func TestReplaceRootKeepsTheAccount(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", app)
	w.load(Replace, "root", "[]")
	if w.exists("dev:policy:app") || !w.exists("dev:user:admin") || !w.exists("dev:policy:root") {
		t.Error("not just what was loaded is gone")
	}
	if !w.allows("dev:user:admin", "update", "dev:policy:root") {
		t.Error("the admin has no rights any more")
	}
	for _, ref := range []string{"!user admin", "!policy root"} {
		if _, err := w.try(Update, "root", "dev:user:admin", "- !delete { record: "+ref+" }\n"); err == nil {
			t.Errorf("%s can be deleted", ref)
		}
	}
}

func TestMissingBranch(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(Add, "nope", "dev:user:admin", "[]")
	var gone *NoBranchError
	if !errors.As(err, &gone) || gone.Policy != "dev:policy:nope" {
		t.Errorf("error is %v", err)
	}
}

// Who may load one branch cannot reach into the others.
func TestBranchesAreIsolated(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", app+`
- !user eve
- !policy { id: mine, owner: !user eve }
- !group admins
- !group eves
- !grant { role: !group eves, member: !user eve }
- !variable { id: gift, owner: !group eves }
- !variable mine
- !user mine
`)
	w.load(Add, "mine", "- !host h\n- !variable v\n")
	for _, text := range []string{
		"- !permit { role: !user /eve, privileges: [execute], resource: !variable /app/password }\n",
		"- !deny { role: !group /app/readers, privileges: [execute], resource: !variable /app/password }\n",
		"- !grant { role: !group /admins, member: !user /eve }\n",
		"- !revoke { role: !group /app/readers, member: !host /app/web }\n",
		"- !grant { role: !user /admin, member: !user /eve }\n",
		"- !grant { role: !policy /root, member: !user /eve }\n",
		"- !delete { record: !variable /app/password }\n",
		"- !variable { id: /app/password, owner: !user /eve }\n",
		"- !variable /app/new\n",
		"- !user /mallory\n",
		"- !user ../mallory\n",
		"- !host /mine-not/h\n",
		"- !permit { role: !user /eve, privileges: [execute], resource: !variable }\n",
		"- !grant { role: !user, member: !user /eve }\n",
		"- !delete { record: !variable }\n",
		"- !user\n",
	} {
		_, err := w.try(Update, "mine", "dev:user:eve", text)
		var bad *policy.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"- !host h2\n- !grant { role: !host h2, member: !user /eve }\n",
		"- !permit { role: !host /app/web, privileges: [execute], resource: !variable v }\n",
		"- !delete { record: !policy ../app }\n- !delete { record: !variable ../gift }\n",
		"- !host\n- !permit { role: !user /eve, privileges: [read], resource: !host }\n",
		"- !delete { record: !host }\n",
		"- !user u\n- !policy { id: sub, body: [ !user w, !variable x ] }\n",
		"- !delete { record: !host h }\n",
	} {
		if _, err := w.try(Update, "mine", "dev:user:eve", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !w.exists("dev:policy:app") || !w.exists("dev:variable:gift") {
		t.Error("a name with dots reached into another branch")
	}
}

func TestPolicyVersionsAreKept(t *testing.T) {
	w := newWorld(t)
	for i := range 25 {
		if res := w.load(Add, "root", "[]"); res.Version != uint64(i+1) {
			t.Fatalf("version %d instead of %d", res.Version, i+1)
		}
	}
	w.view(func(tx *store.Tx) {
		list, err := tx.PolicyVersions("dev:policy:root")
		if err != nil || len(list) != 20 || list[0].Version != 6 || list[19].Version != 25 || list[19].Text != "[]" {
			t.Errorf("%d versions, %v", len(list), err)
		}
	})
}

func TestPreviewShowsWhatApplyDoes(t *testing.T) {
	w := newWorld(t)
	w.load(Add, "root", app)
	w.load(Add, "app", "- !variable old\n- !variable { id: kept, annotations: { a: b } }\n")
	r := Request{Account: "dev", Branch: "app", Mode: Replace, Text: []byte("- !variable kept\n- !host new\n"), Role: "dev:user:admin", Now: noon}
	st, err := r.Parse()
	if err != nil {
		t.Fatal(err)
	}
	undo := errors.New("undo")
	var d *Diff
	if err := w.s.Update(func(tx *store.Tx) error {
		if d, err = Preview(tx, r, st); err != nil {
			return err
		}
		return undo
	}); !errors.Is(err, undo) {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  []Item
		want []string
	}{
		"created": {d.Created, []string{"dev:host:app/new"}},
		"before":  {d.Before, []string{"dev:policy:app", "dev:variable:app/kept"}},
		"after":   {d.After, []string{"dev:policy:app", "dev:variable:app/kept"}},
		"deleted": {d.Deleted, []string{"dev:variable:app/old"}},
	} {
		var ids []string
		for _, it := range c.got {
			ids = append(ids, it.Identifier)
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v instead of %v", name, ids, c.want)
		}
	}
	if !w.exists("dev:variable:app/old") || w.exists("dev:host:app/new") {
		t.Error("a preview changed something")
	}
}

func TestAccountNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"", "a:b", "a/b", "a b", "a\x00"} {
		if err := w.s.Update(func(tx *store.Tx) error { return Account(tx, name, nil, noon) }); err == nil {
			t.Errorf("account %q is made", name)
		}
	}
}

// An addition to an existing user or host adds networks, and an update replaces them.
func TestAdditionsAddNetworks(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		mode Mode
		text string
		want []string
	}{
		{Add, "- !user { id: u, restricted_to: [10.1.1.1, 10.2.0.0/16] }\n", []string{"10.1.1.1/32", "10.2.0.0/16"}},
		{Add, "- !user { id: u, restricted_to: [10.1.1.2, 10.1.1.1/32] }\n", []string{"10.1.1.1/32", "10.2.0.0/16", "10.1.1.2/32"}},
		{Add, "- !user u\n", []string{"10.1.1.1/32", "10.2.0.0/16", "10.1.1.2/32"}},
		{Update, "- !user { id: u, restricted_to: 10.3.0.0/16 }\n", []string{"10.3.0.0/16"}},
	} {
		w.load(c.mode, "root", c.text)
		w.view(func(tx *store.Tx) {
			cred, err := tx.Credentials("dev:user:u")
			if err != nil || !slices.Equal(cred.RestrictedTo, c.want) {
				t.Errorf("after %s: %v, %v", c.text, cred.RestrictedTo, err)
			}
		})
	}
}
