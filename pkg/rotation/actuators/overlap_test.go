package actuators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// accounts is a server in memory with one user, who has a password list at each place. The
// tests of Redis and MariaDB run the same decisions on real servers.
type accounts struct {
	names    []string
	lists    map[string][]string
	owners   map[string]seal
	capacity int
	ended    int
	asked    time.Time // the argument of sessionsBefore
}

func (a *accounts) places(context.Context, string) ([]string, error) { return a.names, nil }
func (a *accounts) most() int                                        { return a.capacity }

func (a *accounts) readAccount(_ context.Context, place, _ string, known []secret.Value) (is account, err error) {
	others := slices.Clone(a.lists[place])
	for _, v := range known {
		at := slices.Index(others, string(v.Bytes()))
		if is.accepts = append(is.accepts, at >= 0); at >= 0 {
			others = slices.Delete(others, at, at+1)
		}
	}
	is.others, is.owner = others, a.owners[place]
	return is, nil
}

func (a *accounts) setPasswords(_ context.Context, place, _ string, was account, known []secret.Value, wanted []bool, owner seal) error {
	a.lists[place], a.owners[place] = slices.Clone(was.others), owner
	for i, v := range known {
		if wanted[i] {
			a.lists[place] = append(a.lists[place], string(v.Bytes()))
		}
	}
	return nil
}

func (a *accounts) sessionsBefore(_ context.Context, _ string, before time.Time) ([]string, error) {
	a.asked = before
	return []string{"an old session"}, nil
}

func (a *accounts) verify(context.Context, string, []byte) error          { return nil }
func (a *accounts) endSessions(context.Context, string) error             { a.ended++; return nil }
func (a *accounts) statements([]string, bool) []string                    { return nil }
func (a *accounts) findObstacles(context.Context, []string, bool) []error { return nil }

// overlapping returns a set with n versions, the newest first, of a user at two places that
// accept all of them and a foreign password.
func overlapping(n int) (*Overlap, *accounts, *versions.Document) {
	a := &accounts{names: []string{"one", "two"}, lists: map[string][]string{}, owners: map[string]seal{}}
	doc := &versions.Document{Identity: "ours"}
	for i := n; i > 0; i-- {
		at := time.Unix(int64(i)*3600, 0).UTC()
		doc.Versions = append(doc.Versions, versions.Version{ID: versions.IDAt(at), Made: at, Set: doc, Parts: map[string]secret.Value{
			username: secret.New([]byte("shop")), password: secret.New(fmt.Appendf(nil, "password-%d", i)),
		}})
	}
	for _, place := range a.names {
		a.lists[place] = []string{"foreign"}
		for _, v := range doc.Versions {
			a.lists[place] = append(a.lists[place], string(v.Parts[password].Bytes()))
		}
		a.owners[place] = sealOf("shop/db", doc)
	}
	read := func(context.Context) (*versions.Document, error) {
		again := *doc
		again.Versions = slices.Clone(doc.Versions)
		for i, v := range again.Versions { // which the caller wipes
			again.Versions[i].Parts = map[string]secret.Value{username: secret.New([]byte("shop")), password: secret.New(slices.Clone(v.Parts[password].Bytes()))}
		}
		return &again, nil
	}
	return &Overlap{Set: "shop/db", User: "shop", Server: a, Current: read}, a, doc
}

func TestOneOfSeveralPasswordsComesAndGoesAtEachPlace(t *testing.T) {
	o, a, doc := overlapping(3)
	for ends, end := range []bool{false, true} {
		o.EndSessions = end
		good(t, o.Revoke(t.Context(), doc.Versions[1]))
		if a.ended != ends {
			t.Errorf("with EndSessions %v, sessions were ended %d times", end, a.ended)
		}
		for place, list := range a.lists {
			if want := []string{"foreign", "password-3", "password-1"}; !slices.Equal(list, want) {
				t.Errorf("%s accepts %q, want %q", place, list, want)
			}
		}
		_, err := o.Apply(t.Context(), doc.Versions[1])
		good(t, err)
		for place, list := range a.lists {
			if want := []string{"foreign", "password-3", "password-2", "password-1"}; !slices.Equal(list, want) {
				t.Errorf("%s accepts %q, want %q", place, list, want)
			}
		}
	}
}

func TestAPasswordIsFreeBelowTheMost(t *testing.T) {
	for _, test := range []struct {
		most, versions, retired int
		free                    bool
	}{{2, 1, 0, true}, {2, 2, 0, false}, {2, 3, 1, false}, {2, 3, 2, true}, {1, 1, 0, false}, {0, 9, 0, true}} {
		o, a, doc := overlapping(test.versions)
		a.capacity = test.most
		for i := range test.retired {
			doc.Versions[len(doc.Versions)-1-i].State = versions.Retired
		}
		parts, err := o.Prepare(t.Context(), doc)
		if free := err == nil && string(parts[username].Bytes()) == "shop"; free != test.free {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestAUserOfAnotherSet is refused at each place, but what it refuses already is no error.
func TestAUserOfAnotherSet(t *testing.T) {
	o, a, doc := overlapping(2)
	a.owners["two"] = sealOf("other/set", doc)
	check := func(doc *versions.Document, want ...string) {
		t.Helper()
		got := fmt.Sprint(o.Check(t.Context(), doc), o.Barred(t.Context(), doc))
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("it says %s, not %q", got, want)
			}
		}
	}
	check(doc, "user shop at one also accepts passwords", "user shop at two also accepts passwords", `"syncer rotate claim shop/db"`)
	if _, err := o.Prepare(t.Context(), doc); err == nil {
		t.Error("a version is prepared")
	}
	for _, v := range doc.Versions {
		if _, err := o.Apply(t.Context(), v); err == nil {
			t.Error("a password of another set's user is set")
		}
	}
	if err := o.Revoke(t.Context(), doc.Versions[1]); err == nil {
		t.Error("a password that another set's user accepts counts as revoked")
	}
	a.lists["two"] = []string{"theirs"}
	good(t, o.Revoke(t.Context(), doc.Versions[1]))
	if !slices.Equal(a.lists["two"], []string{"theirs"}) {
		t.Errorf("the other set's user accepts %q", a.lists["two"])
	}
	for _, doc.Claimed = range []string{"", versions.IDAt(time.Now().Add(-time.Hour))} {
		if _, err := o.Apply(t.Context(), doc.Versions[1]); err == nil {
			t.Errorf("with the claim %q, the other set's user gets a password", doc.Claimed)
		}
	}
	doc.Claimed = versions.IDAt(time.Now().Add(time.Hour))
	_, err := o.Apply(t.Context(), doc.Versions[0])
	good(t, err)
	if !slices.Equal(a.lists["two"], []string{"theirs", "password-2"}) || !a.owners["two"].is(sealOf("shop/db", doc)) {
		t.Errorf("after a claim it accepts %q", a.lists["two"])
	}
}

// TestOldSessionsBlockARevocation, if they began before the next version.
func TestOldSessionsBlockARevocation(t *testing.T) {
	o, a, doc := overlapping(3)
	for i, v := range doc.Versions {
		a.asked = time.Time{}
		uses, err := o.InUse(t.Context(), v)
		good(t, err)
		if i == 0 && len(uses) > 0 || i > 0 && (len(uses) != 1 || !a.asked.Equal(doc.Versions[i-1].Made)) {
			t.Errorf("version %d is in use by %q; sessions were asked for from before %s", i, uses, a.asked)
		}
	}
	o.EndSessions = true
	if uses, err := o.InUse(t.Context(), doc.Versions[2]); err != nil || len(uses) > 0 {
		t.Errorf("sessions that will be ended block: %q, %v", uses, err)
	}
}
