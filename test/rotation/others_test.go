package rotation

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// with returns a Rotator of the set with any actuator.
func (s *shop) with(client *conjur.Client, a actuators.Actuator, g generate.Config) *rotation.Rotator {
	return s.rotator(client, a, nil, func(c *rotation.Config) {
		set := &c.Sets[0]
		set.Generate, set.Outside, set.Schedule = g, "there", rotation.Schedule{Every: time.Hour, Retry: time.Millisecond}
	})
}

// TestHostsOfConjurTakeTurns rotates API keys, which Conjur makes.
func TestHostsOfConjurTakeTurns(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Policy(`
- !host app-a
- !host app-b
- !permit { role: !host rotates, privileges: [update], resources: [!host app-a, !host app-b] }
`)
	client := s.as("rotates", "engine")
	keys := &actuators.APIKeys{Hosts: []string{"app-a", "app-b"}, Conjur: client, Set: func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		return held.Document, err
	}}
	run(t, s.with(client, keys, generate.Config{}))
	primary := s.Idle("")
	for range 3 {
		old := primary
		primary = s.Rotate()
		if string(primary.Parts["login"].Bytes()) == string(old.Parts["login"].Bytes()) {
			t.Error("the hosts do not take turns")
		}
		if err := keys.Verify(t.Context(), primary); err != nil {
			t.Error(err)
		}
		if err := keys.Verify(t.Context(), old); err == nil {
			t.Error("the old key is good")
		}
	}
}

// TestAServiceRefusesThreeTimes: each new version has other bytes, and the primary does not
// change.
func TestAServiceRefusesThreeTimes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refusals, tried, good := 0, map[string]string{}, ""
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var step struct {
			Step, ID string
			Parts    map[string][]byte
		}
		_ = json.NewDecoder(r.Body).Decode(&step)
		mu.Lock()
		defer mu.Unlock()
		if step.Step == "apply" {
			tried[step.ID] = string(step.Parts["password"])
			if good != "" && step.ID != good && refusals < 3 {
				refusals++
				w.WriteHeader(http.StatusConflict)
				return
			}
			good = step.ID
		}
		if step.Step == "revoke" && step.ID == good {
			t.Error("the primary is revoked")
		}
	}))
	t.Cleanup(service.Close)
	s := newShop(t)
	client := s.as("rotates", "engine")
	steps := &actuators.Steps{Set: set, Send: actuators.HTTP(service.URL, service.Client()), Key: func(context.Context) (secret.Value, error) {
		return secret.New([]byte("a key of the tests")), nil
	}}
	run(t, s.with(client, steps, generate.Config{Password: &generate.Password{}}))
	s.Idle("")
	for range 3 {
		old, _ := s.Doc().Primary()
		if err := s.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc := s.Until("a version that came to nothing", func(d *versions.Document) bool {
			mu.Lock()
			defer mu.Unlock()
			return d.Stage() == "idle" && len(tried) == refusals+1
		})
		if now, _ := doc.Primary(); now.ID != old.ID {
			t.Fatalf("the primary is %s", now.ID)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if passwords := sets.New(slices.Collect(maps.Values(tried))...); len(passwords) != len(tried) {
		t.Errorf("%d versions have %d passwords", len(tried), len(passwords))
	}
}
