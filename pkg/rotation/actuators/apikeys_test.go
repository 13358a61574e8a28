package actuators

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

type hostKey struct{ login, key string }

func (h hostKey) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{Login: h.login, ContentType: "text/plain", Body: secret.New([]byte(h.key))}, nil
}

// keysOf are API keys whose set is *doc.
func keysOf(t *testing.T, doc **versions.Document) *APIKeys {
	t.Helper()
	conjurd := conjurdtest.Start(t)
	conjurd.Policy(`
- !host rotates
- !host app-a
- !host app-b
- !host foreign
- !host { id: named, annotations: { syncer/set: shop/keys ours } }
- !permit { role: !host rotates, privileges: [update], resources: [!host app-a, !host app-b, !host named] }
`)
	client, err := conjur.New(conjur.Config{
		ApplianceURL: conjurd.URL, Account: conjurd.Account, CA: string(conjurd.CA), RateLimit: 1e6,
		Authenticator: hostKey{"host/rotates", conjurd.HostKey("rotates")},
	})
	good(t, err)
	t.Cleanup(client.Close)
	return &APIKeys{ID: "shop/keys", Hosts: []string{"app-a", "app-b"}, Conjur: client, Set: func(context.Context) (*versions.Document, error) { return read(*doc) }}
}

// read returns a set as it is read anew: it shares nothing with doc.
func read(doc *versions.Document) (*versions.Document, error) {
	if doc == nil {
		return nil, nil
	}
	again := *doc
	again.Versions = slices.Clone(doc.Versions)
	for i, v := range doc.Versions {
		parts := map[string]secret.Value{}
		for name, part := range v.Parts {
			parts[name] = secret.New(bytes.Clone(part.Bytes()))
		}
		again.Versions[i].Parts = parts
	}
	return &again, nil
}

// with is a set with one version in that state.
func with(v versions.Version, state versions.State) *versions.Document {
	v.State = state
	return &versions.Document{Versions: []versions.Version{v}}
}

func TestHostsTakeTurns(t *testing.T) {
	doc := versions.New("us")
	a := keysOf(t, &doc)
	ctx := t.Context()
	parts, err := a.Prepare(ctx, doc)
	good(t, err)
	v := versions.Version{ID: "v1", Fence: "v1", Parts: parts}
	if login := string(parts[hostLogin].Bytes()); login != "host/app-a" {
		t.Fatalf("it is the turn of %s", login)
	}
	doc = with(v, versions.Pending)
	lost, err := a.Apply(ctx, v)
	good(t, err)
	minted, err := a.Apply(ctx, v)
	good(t, err)
	v.Parts[apiKey] = lost[apiKey]
	refused(t, a.Verify(ctx, v))
	v.Parts[apiKey] = minted[apiKey]
	good(t, a.Verify(ctx, v))
	doc = with(v, versions.Primary)
	again, err := a.Apply(ctx, v)
	if err != nil || again != nil {
		t.Errorf("a key that is there is made again: %v", err)
	}
	if parts, err := a.Prepare(ctx, doc); err != nil || string(parts[hostLogin].Bytes()) != "host/app-b" {
		t.Errorf("next it is the turn of %s: %v", parts[hostLogin].Bytes(), err)
	}

	if err := a.Revoke(ctx, v); err == nil {
		t.Error("a primary is revoked")
	}
	good(t, a.Verify(ctx, v))
	doc = with(v, versions.Revoking)
	good(t, a.Revoke(ctx, v))
	good(t, a.Revoke(ctx, v))
	refused(t, a.Verify(ctx, v))
}

// Who slept between look and act finds the set changed, and changes nothing.
func TestWhoComesLateLeavesAPIKeysAlone(t *testing.T) {
	doc := versions.New("us")
	a := keysOf(t, &doc)
	ctx := t.Context()
	v := versions.Version{ID: "v1", Fence: "v1", Parts: map[string]secret.Value{hostLogin: secret.New([]byte("host/app-a"))}}
	doc = with(v, versions.Pending)
	minted, err := a.Apply(ctx, v)
	good(t, err)
	recorded := v
	recorded.Parts = map[string]secret.Value{hostLogin: v.Parts[hostLogin], apiKey: minted[apiKey]}
	for _, state := range []versions.State{versions.Pending, versions.Accepted, versions.Primary} {
		doc = with(recorded, state)
		if _, err := a.Apply(ctx, v); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%s: a late apply: %v", state, err)
		}
	}
	doc = with(versions.Version{ID: "v0"}, versions.Retired)
	if err := a.Revoke(ctx, v); err == nil {
		t.Error("a late revoke of what had no key")
	}
	old := recorded
	old.Parts = map[string]secret.Value{hostLogin: v.Parts[hostLogin], apiKey: secret.New([]byte("a key of an earlier turn of this host"))}
	good(t, a.Revoke(ctx, old))
	good(t, a.Verify(ctx, recorded))

	foreign := versions.Version{ID: "v2", Fence: "v2", Parts: map[string]secret.Value{hostLogin: secret.New([]byte("host/foreign"))}}
	doc = with(foreign, versions.Pending)
	if _, err := a.Apply(ctx, foreign); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("without a right: %v", err)
	}
}

// TestAHostNamesItsSet in the policy, and its key is left alone by every other set.
func TestAHostNamesItsSet(t *testing.T) {
	doc := &versions.Document{Identity: "ours"}
	a := keysOf(t, &doc)
	a.Hosts = []string{"named", "app-a"}
	ctx := t.Context()
	parts, err := a.Prepare(ctx, doc)
	good(t, err)
	v := versions.Version{ID: "v1", Fence: "v1", State: versions.Pending, Parts: parts}
	doc.Versions = []versions.Version{v}
	_, err = a.Apply(ctx, v)
	good(t, err)
	for what, do := range map[string]func(){
		"another set":             func() { a.ID = "shop/other" },
		"the set, declared anew":  func() { a.ID, doc.Identity = "shop/keys", "another" },
		"the set before it began": func() { doc.Identity = "" },
	} {
		do()
		_, prepared := a.Prepare(ctx, versions.New("us"))
		_, applied := a.Apply(ctx, v)
		for _, err := range append(a.Check(ctx, doc), prepared, applied) {
			if err == nil || !strings.Contains(err.Error(), `the host named belongs to the set "shop/keys ours"`) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
