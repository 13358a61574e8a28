package conjurd_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cyberark/conjur-api-go/conjurapi"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

const factoryPolicy = `
- !policy
  id: app
  body:
  - !layer web
  - !layer db
  - !variable password
  - !permit { role: !layer web, privileges: [ read, execute ], resource: !variable password }
  - !host-factory { id: hf, layers: [ !layer web ], annotations: { team: blue } }
  - !user maker
  - !user reader
  - !user keys
  - !host old
  - !permit { role: !user maker, privileges: [ read, execute, update ], resource: !host-factory hf }
  - !permit { role: !user reader, privileges: [ read ], resource: !host-factory hf }
- !user
  id: alice
  public_keys: [ ssh-rsa one laptop, ssh-rsa two desk ]
`

func startFactory(t *testing.T, opts ...conjurdtest.Option) (s *conjurdtest.Server, as func(login string) *conjurapi.Client) {
	t.Helper()
	s = conjurdtest.Start(t, opts...)
	s.Policy(factoryPolicy)
	s.Set("app/password", "pw")
	return s, func(login string) *conjurapi.Client {
		t.Helper()
		key, err := s.Conjurd.APIKey(context.Background(), login)
		if err != nil {
			t.Fatal(err)
		}
		return apiClient(t, s, login, key)
	}
}

// The official client makes tokens, and hosts with them, which can do what
// the factory's layers may.
func TestClientHostFactories(t *testing.T) {
	s, as := startFactory(t)
	maker := as("maker@app")
	tokens, err := maker.CreateToken("1h", "dev:host_factory:app/hf", []string{"127.0.0.0/8", "10.1.2.3"}, 2)
	if err != nil || len(tokens) != 2 || tokens[0].Token == tokens[1].Token || strings.Join(tokens[0].Cidr, " ") != "127.0.0.0/8 10.1.2.3/32" {
		t.Fatalf("tokens %+v, %v", tokens, err)
	}
	host, err := maker.CreateHostWithAnnotations("app/new", tokens[0].Token, map[string]string{"creator": "me", "authn/api-key": "true"})
	if err != nil || host.Id != "dev:host:app/new" || host.Owner != "dev:host_factory:app/hf" || len(host.Annotations) != 2 {
		t.Fatalf("host %+v, %v", host, err)
	}
	web := apiClient(t, s, "host/app/new", host.ApiKey)
	if got, err := web.RetrieveSecret("app/password"); err != nil || string(got) != "pw" {
		t.Errorf("the secret is %q, %v", got, err)
	}
	again, err := maker.CreateHost("app/new", tokens[1].Token)
	if err != nil || again.ApiKey == host.ApiKey || len(again.Annotations) != 2 {
		t.Errorf("made again, the host is %+v, %v", again, err)
	}
	if key := s.HostKey("app/new"); key != again.ApiKey {
		t.Error("the key is not the new one")
	}
	if _, err := maker.CreateHost("app/old", tokens[0].Token); err == nil {
		t.Error("another's host is taken over")
	}
	if err := maker.DeleteToken(tokens[0].Token); err != nil {
		t.Error(err)
	}
	if _, err := maker.CreateHost("app/newer", tokens[0].Token); err == nil {
		t.Error("a deleted token is good")
	}
	if err := maker.DeleteToken(tokens[0].Token); err == nil {
		t.Error("a token is deleted twice")
	}
}

func TestHostFactoryRights(t *testing.T) {
	_, as := startFactory(t)
	token := func(login string) (string, error) {
		tokens, err := as(login).CreateToken("1h", "dev:host_factory:app/hf", nil, 1)
		if err != nil {
			return "", err
		}
		return tokens[0].Token, nil
	}
	for _, login := range []string{"reader@app", "keys@app"} {
		if _, err := token(login); err == nil {
			t.Errorf("%s makes a token", login)
		}
	}
	good, err := token("maker@app")
	if err != nil {
		t.Fatal(err)
	}
	if err := as("reader@app").DeleteToken(good); err == nil {
		t.Error("a reader deletes a token")
	}
	maker := as("maker@app")
	for _, factory := range []string{"dev:host_factory:nope", "dev:host:app/old"} {
		if _, err := maker.CreateToken("1h", factory, nil, 1); err == nil {
			t.Errorf("a token of %s", factory)
		}
	}
	for _, c := range []struct {
		cidr  []string
		count int
	}{{[]string{"nonsense"}, 1}, {nil, 0}, {nil, 1_000_000}} {
		if tokens, err := maker.CreateToken("1h", "dev:host_factory:app/hf", c.cidr, c.count); err == nil {
			t.Errorf("%+v: %d tokens", c, len(tokens))
		}
	}
	for _, id := range []string{"", " ", strings.Repeat("x", 3000)} {
		if _, err := maker.CreateHost(id, good); err == nil {
			t.Errorf("a host %.10q", id)
		}
	}
	if _, err := maker.CreateHost("app/x", "nonsense"); err == nil {
		t.Error("a host without a token")
	}
}

// A token is good until it expires, where it is for, and while its factory is
// there.
func TestHostFactoryTokensEnd(t *testing.T) {
	var ahead atomic.Int64
	s, as := startFactory(t, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	maker := as("maker@app")
	make := func(cidr ...string) string {
		t.Helper()
		tokens, err := maker.CreateToken("1m", "dev:host_factory:app/hf", cidr, 1)
		if err != nil {
			t.Fatal(err)
		}
		return tokens[0].Token
	}
	elsewhere, short, orphan := make("10.0.0.0/8"), make(), make()
	if _, err := maker.CreateHost("app/a", elsewhere); err == nil {
		t.Error("a token is good elsewhere")
	}
	if _, err := maker.CreateHost("app/a", short); err != nil {
		t.Error(err)
	}
	ahead.Store(int64(time.Minute))
	if _, err := maker.CreateHost("app/b", short); err == nil {
		t.Error("an expired token is good")
	}
	ahead.Store(0)
	s.Policy("- !delete { record: !host-factory app/hf }\n")
	s.Policy("- !host-factory { id: app/hf, layers: [ !layer app/web ] }\n")
	if _, err := maker.CreateHost("app/c", orphan); err == nil {
		t.Error("the token of a deleted factory is good")
	}
	if _, err := s.Conjurd.APIKey(t.Context(), "host/app/a"); err == nil {
		t.Error("the hosts of a deleted factory are there")
	}
}

// Who may load one branch cannot make hosts that belong to others' layers.
func TestHostFactoryNeedsRightsOverItsLayers(t *testing.T) {
	s, as := startFactory(t)
	s.Policy("- !layer vip\n- !permit { role: !user maker@app, privileges: [ read, create, update ], resource: !policy app }\n")
	maker := as("maker@app")
	for _, text := range []string{
		"- !host-factory { id: evil, layers: [ !layer /vip ] }\n", "- !host-factory { id: evil, layers: [ !layer ../vip ] }\n",
		"- !host-factory { id: evil, layers: [ !layer nope ] }\n",
	} {
		if _, err := maker.LoadPolicy(conjurapi.PolicyModePost, "app", strings.NewReader(text)); err == nil {
			t.Errorf("%s is loaded", text)
		}
	}
	if _, err := maker.LoadPolicy(conjurapi.PolicyModePost, "app", strings.NewReader("- !host-factory { id: good, layers: [ !layer db ] }\n")); err != nil {
		t.Error(err)
	}
}

func TestClientPublicKeys(t *testing.T) {
	_, as := startFactory(t)
	for id, want := range map[string]string{"alice": "ssh-rsa one laptop\nssh-rsa two desk\n", "maker@app": "\n", "nobody": "\n"} {
		if got, err := as("admin").PublicKeys("user", id); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
}
