package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// setOf sets a variable to a set of versions.
func (w *world) setOf(id string, d *versions.Document) {
	w.Helper()
	value, err := d.Encode()
	if err != nil {
		w.Fatal(err)
	}
	if err := w.Server.Conjurd.SetMany(w.Context(), map[string][]byte{id: value}); err != nil {
		w.Fatal(err)
	}
}

// showKeys has a group show a set.
func (w *world) showKeys(group, format, id string) {
	alias := id
	if format == "directory" {
		alias = "*"
	}
	w.Annotations["conjur-secrets."+group] = fmt.Sprintf("- %q: {keys: %s}\n", alias, id)
	w.Annotations["secret-file-format."+group] = format
}

// A sidecar answers for the files that it has written, all of them, and for what
// the application has noted, if it has.
func TestASidecarAnswersForTheKeysOfItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	w.Canaries = []string{"canary-key"}
	parts := map[string]secret.Value{"key": secret.New([]byte("canary-key"))}
	by := versions.Entry{At: time.Now()}
	d := versions.New("").Make("r1", parts, false, by).Promote("r1", by)
	for _, id := range []string{"jwt", "other"} {
		w.Declare(id)
		w.setOf(id, d)
	}
	w.showKeys("keys", "directory", "jwt")
	w.showKeys("public", "jwks", "jwt")
	w.showKeys("more", "directory", "other")
	p := w.start()
	w.awaitReady(200, "ok")

	c, err := consumers.New(consumers.Config{
		Set: "jwt", Ask: []string{"http://" + w.Annotations["server-address"] + "/keys"}, Again: time.Millisecond, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	d = d.Make("r2", parts, false, by)
	coming, _ := d.Version("r2")
	if a := c.Introduced(ctx, d, coming, nil); a.Open || !strings.Contains(a.Waits, "does not have r2") {
		t.Errorf("before the set is written: %+v", a)
	}
	w.setOf("jwt", d)
	eventually(t, "the new key is in the files", func() bool { return c.Introduced(ctx, d, coming, nil).Open })

	w.write(w.Path("status", notify.KeysSeenFile), `{"jwt":{"ids":["r1"],"primary":"r1"}}`)
	if a := c.Introduced(ctx, d, coming, nil); a.Open || !strings.Contains(a.Waits, "does not have r2") {
		t.Errorf("before the application has it: %+v", a)
	}
	w.write(w.Path("status", notify.KeysSeenFile), `{"jwt":["r1","r2"]}`)
	if a := c.Introduced(ctx, d, coming, nil); a.Open || !strings.Contains(a.Waits, "no answer: status 503") {
		t.Errorf("with a note that cannot be read: %+v", a)
	}
	w.write(w.Path("status", notify.KeysSeenFile), `{"jwt":{"ids":["r2","r1"],"primary":"r1"}}`)
	if a := c.Introduced(ctx, d, coming, nil); !a.Open {
		t.Errorf("when the application has it: %+v", a)
	}
	p.Stop()
}

// A set that goes back, as after a restored backup, takes no key away, also if
// Syncer was started anew meanwhile.
func TestASetThatGoesBackIsNotDeliveredByALaterProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Canaries = []string{"canary-key"}
	parts := map[string]secret.Value{"key": secret.New([]byte("canary-key"))}
	by := versions.Entry{At: time.Now()}
	former := versions.New("").Make("r1", parts, false, by).Promote("r1", by)
	w.Declare("jwt")
	w.setOf("jwt", former.Make("r2", parts, false, by))
	w.showKeys("keys", "directory", "jwt")
	w.showKeys("public", "jwks", "jwt")
	p := w.start()
	w.settle()
	p.Stop()
	held := w.look()

	w.setOf("jwt", former)
	p = w.start()
	for _, group := range []string{"keys", "public"} {
		eventually(t, "it says why "+group+" stays", func() bool {
			return len(p.Lines("Failing", group, "step 2, but step 3 was delivered already")) > 0
		})
	}
	p.Stop()
	for path, was := range held {
		if strings.HasPrefix(path, w.Path("secrets")) && w.look()[path] != was {
			t.Errorf("%s was touched", path)
		}
	}
}
