package clouds

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestAKeyOfGoogleIsDisabledBeforeItIsDeleted, and a token that expired is renewed.
func TestAKeyOfGoogleIsDisabledBeforeItIsDeleted(t *testing.T) {
	s, g := newSite(t), NewGCP(t, shop, nil)
	g.Ahead = -20 * time.Minute // the clock of this machine is wrong
	own := g.Add(g.New().ID, time.Now())
	private := g.New().Secret
	g.edit(own.ID, func(k *Key) { k.Secret = private })
	config := brisk(s.reader)
	config.DeleteAfter = time.Hour
	h := &heard{}
	keys := cloud.NewGCP(config, cloud.GCP{Account: g.Account, Endpoint: g.URL, Client: client, Admin: value(string(g.File(g.Keys()[0])))})
	run(t, s.engine(s.reader, keys, nil, h))
	first := s.Idle("")
	if names := first.PartNames(); !slices.Equal(names, []string{"key"}) {
		t.Errorf("the parts are %q", names)
	}
	g.Renew()
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "the wait is named", func() bool { return strings.Contains(h.all(), "is inactive, and is deleted 1h0m0s after that") })
	if keys := g.Keys(); len(keys) != 3 || !keys[0].Active || keys[1].Active || !keys[2].Active {
		t.Errorf("there are %d keys", len(keys))
	}
	doc, err := s.Look(t.Context())
	if problems := keys.Check(t.Context(), doc); err != nil || len(problems) > 0 {
		t.Errorf("check says %v (%v)", problems, err)
	}
}

// edit changes a key.
func (c *Cloud) edit(id string, change func(*Key)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.keys {
		if k.ID == id {
			change(k)
		}
	}
}

// TestAnAccountCanRotateItself: Syncer calls Google Cloud with the primary.
func TestAnAccountCanRotateItself(t *testing.T) {
	s, g := newSite(t), NewGCP(t, shop, nil)
	old := g.Add("old", time.Now())
	old.Secret = g.New().Secret
	g.edit(old.ID, func(k *Key) { k.Secret = old.Secret })
	s.Set("cloud/old-secret", string(g.File(old)))
	config := brisk(s.reader)
	config.Adopts = true
	keys := cloud.NewGCP(config, cloud.GCP{Account: g.Account, Endpoint: g.URL, Client: client, Admin: value(string(g.File(old)))})
	run(t, s.engine(s.reader, keys, nil, nil, func(r *rotation.Plan) { r.Adopt = map[string]string{"key": "cloud/old-secret"} }))
	if first := s.Idle(""); !slices.Equal(first.PartNames(), []string{"key"}) {
		t.Errorf("the parts are %q", first.PartNames())
	}
}

// TestASecretOfAzureByHand of the same moment stays, because Syncer marks its own.
func TestASecretOfAzureByHand(t *testing.T) {
	s, a := newSite(t), NewAzure(t, nil)
	ctx, kill := context.WithCancel(t.Context())
	s.engine(s.reader, killed{a.keys(brisk(s.reader)), kill}, nil, nil).Run(ctx)
	lost := a.Keys()[0]
	human := a.Add("by-hand", time.Now())
	run(t, s.engine(s.reader, a.keys(brisk(s.reader)), nil, nil))
	first := s.Idle("")
	if !slices.Equal(a.Ended(), []string{lost.ID}) || a.Keys()[0].ID != human.ID || len(a.Keys()) != 2 {
		t.Errorf("removed %q", a.Ended())
	}
	if names := first.PartNames(); !slices.Equal(names, []string{"clientId", "clientSecret", "keyId", "tenantId"}) {
		t.Errorf("the parts are %q", names)
	}
	if rest := time.Until(*a.Ends.Load()); rest < 23*time.Hour || rest > 25*time.Hour {
		t.Errorf("Azure ends the secret in %v", rest)
	}
}

// TestTheIdentityOfThePod in Azure: a federated token, or the managed identity.
func TestTheIdentityOfThePod(t *testing.T) {
	s, a := newSite(t), NewAzure(t, nil)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("federated"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, ""} {
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", path)
		t.Setenv("AZURE_CLIENT_ID", "syncer")
		t.Setenv("AZURE_TENANT_ID", a.Tenant)
		keys := cloud.NewAzure(brisk(s.reader), cloud.Azure{Application: a.Application, Tenant: a.Tenant, Endpoint: a.URL, Client: client})
		if _, err := keys.Prepare(t.Context(), versions.New("us")); err != nil {
			t.Error(err)
		}
	}
}
