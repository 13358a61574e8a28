package rotation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// annotated is a client of a server whose own rotator is to change a variable. The test
// says when it does.
type annotated struct {
	Client
	id      string
	changes bool // a new value at each look, and no expiry yet
	expires bool // the newest value is that rotator's
	newest  uint64
}

func (c *annotated) Resource(ctx context.Context, token *conjur.Token, id string) (conjur.Resource, conjur.Reading) {
	about, reading := c.Client.Resource(ctx, token, id)
	if id == c.id {
		if c.changes {
			c.newest++
		}
		about.Annotations = map[string]string{conjur.RotatorAnnotation: "postgresql/password"}
		about.Newest, about.Expires = c.newest, c.expires
	}
	return about, reading
}

// TestNothingHappensWhileAnotherRotatorChangesThePublished: no version begins, none is
// revoked, and the primary is not made to be accepted again.
func TestNothingHappensWhileAnotherRotatorChangesThePublished(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}, inUse: []string{"a session"}}
	set := s.logins(o)
	set.Publish = map[string]render.Published{"url": {Text: "{{.user}}:{{.token}}"}}
	r, _ := s.rotator(s.client, "me", set)
	client := &annotated{Client: s.client, id: "url"}
	r = through(client, r)
	once := func(waits string) {
		t.Helper()
		if err := r.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if report := r.Reports()[0]; !strings.Contains(report.WaitsFor, waits) {
			t.Errorf("it waits for %q, want %q", report.WaitsFor, waits)
		}
	}
	const another, expiry = "somebody else changed it just now", "the server's own rotator has changed it"
	client.changes = true
	if once(another); len(s.doc().Versions) > 0 {
		t.Error("a version began")
	}
	client.changes = false
	once("")
	first := s.primary()

	s.command("now", versions.Command{})
	r.sets["jwt"].commands.arrived.Store(true)
	if once("a session"); s.primary() == first || len(o.accepts) != 2 {
		t.Fatalf("%s is the primary, and %d logins are accepted", s.primary(), len(o.accepts))
	}
	o.inUse, client.expires = nil, true
	if once(expiry); len(o.accepts) != 2 {
		t.Error("a login was revoked")
	}
	client.expires = false
	if once(""); len(o.accepts) != 1 {
		t.Errorf("%d logins are accepted in the end", len(o.accepts))
	}

	clear(o.accepts)
	r.sets["jwt"].verified, client.changes = time.Time{}, true
	if once(another); len(o.accepts) > 0 {
		t.Error("the primary was applied again")
	}
	client.changes = false
	if once(""); len(o.accepts) != 1 {
		t.Error("the primary was not applied again")
	}
}

// TestAVersionHasThePartsOfTheOthers, or is not made.
func TestAVersionHasThePartsOfTheOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	set := s.keys(nil)
	set.Generate.Random, set.Generate.Ed25519 = 0, true
	s.command("now", versions.Command{})
	other, _ := s.rotator(s.client, "me", set)
	other.config.Retry = time.Millisecond
	err := other.Once(t.Context())
	wants(t, err, `the new version would have ["private" "public"]`)
	if n := len(s.doc().Versions); n != 1 {
		t.Errorf("the set has %d versions", n)
	}
}
