package conjur_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/secret"
)

const setPolicy = `
- !variable a
- !variable b
- !variable readonly
- !host app
- !permit { role: !host app, privileges: [read, execute, update], resources: [!variable a, !variable b] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable readonly }
`

// embedded is a client of an embedded server with setPolicy, as its host app.
func embedded(t *testing.T, opts ...conjurdtest.Option) (*conjur.Client, *conjurdtest.Server) {
	t.Helper()
	server := conjurdtest.Start(t, opts...)
	server.Policy(setPolicy)
	c, err := conjur.New(conjur.Config{
		ApplianceURL: server.URL, Account: server.Account, CA: string(server.CA),
		Authenticator: authn.APIKey{Login: "host/app", Key: secret.New([]byte(server.HostKey("app")))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, server
}

func newValues(pairs ...string) (values []conjur.NewValue) {
	for i := 0; i < len(pairs); i += 2 {
		values = append(values, conjur.NewValue{ID: pairs[i], Value: secret.New([]byte(pairs[i+1]))})
	}
	return values
}

func TestSetAllSetsEverything(t *testing.T) {
	c, _ := embedded(t)
	if err := c.SetAll(t.Context(), newValues("a", "1", "b", "\x00\xff")); err != nil {
		t.Fatal(err)
	}
	wantFound(t, fetch(t, c, "a"), "1")
	wantFound(t, fetch(t, c, "b"), "\x00\xff")
}

// TestARefusedWriteIsRepeatedWhole, with a new token.
func TestARefusedWriteIsRepeatedWhole(t *testing.T) {
	c, server := embedded(t)
	refuse := false
	server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuse && r.Header.Get("Authorization") != "" {
				refuse = false
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	server.Set("a", "old")
	wantFound(t, fetch(t, c, "a"), "old")
	server.ResetCounts()
	refuse = true
	if err := c.Set(t.Context(), "a", secret.New([]byte("new"))); err != nil || refuse {
		t.Fatalf("refused once: %t, error %v", !refuse, err)
	}
	if n := server.Counts().Authentications; n != 1 {
		t.Errorf("%d new tokens, want one", n)
	}
	wantFound(t, fetch(t, c, "a"), "new")
}

func TestSetAllRefusedNamesAllAndSetsNothing(t *testing.T) {
	c, server := embedded(t)
	server.Set("a", "old")
	err := c.SetAll(t.Context(), newValues("a", "new", "readonly", "x", "nope", "y", "b", " "))
	refused, ok := errors.AsType[*conjur.RefusedError](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := map[string]string{"readonly": "forbidden", "nope": "not_found", "b": "empty"}
	if !maps.Equal(refused.Codes, want) {
		t.Errorf("refused %v, want %v", refused.Codes, want)
	}
	wantFound(t, fetch(t, c, "a"), "old")
}

func TestSetAllComparesVersions(t *testing.T) {
	c, server := embedded(t)
	server.Set("a", "old")
	values := newValues("a", "new")
	stale := uint64(0)
	values[0].Version = &stale
	refused, ok := errors.AsType[*conjur.RefusedError](c.SetAll(t.Context(), values))
	if !ok || refused.Codes["a"] != "version_conflict" {
		t.Fatalf("got %v, want a version conflict", refused)
	}
	current := uint64(1)
	values[0].Version = &current
	if err := c.SetAll(t.Context(), values); err != nil {
		t.Error(err)
	}
	wantFound(t, fetch(t, c, "a"), "new")
}

func TestSetAllIsNotOfferedByTheGenuineServer(t *testing.T) {
	c, _ := embedded(t, conjurdtest.Strict())
	if err := c.SetAll(t.Context(), newValues("a", "1")); !errors.Is(err, conjur.ErrNotOffered) {
		t.Errorf("got %v, want ErrNotOffered", err)
	}
	if err := c.Set(t.Context(), "a", secret.New([]byte("1"))); err != nil {
		t.Error(err)
	}
	wantFound(t, fetch(t, c, "a"), "1")
	if status, ok := errors.AsType[*conjur.StatusError](c.Set(t.Context(), "readonly", secret.New([]byte("1")))); !ok || status.Status != 403 {
		t.Errorf("got %v, want a status error 403", status)
	}
}

// TestNothingIsChangedByWhoMayNot: reads go on.
func TestNothingIsChangedByWhoMayNot(t *testing.T) {
	server := conjurdtest.Start(t)
	server.Policy(setPolicy)
	server.Set("a", "old")
	why := errors.New("another leads")
	c, err := conjur.New(conjur.Config{
		ApplianceURL: server.URL, Account: server.Account, CA: string(server.CA),
		Authenticator: authn.APIKey{Login: "host/app", Key: secret.New([]byte(server.HostKey("app")))},
		MayWrite:      func() error { return why },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, rotate := c.RotateKey(t.Context(), "other")
	for _, err := range []error{c.SetAll(t.Context(), newValues("a", "new")), c.Set(t.Context(), "a", secret.New([]byte("new"))), rotate} {
		if !errors.Is(err, why) {
			t.Errorf("error %v, want %v", err, why)
		}
	}
	wantFound(t, fetch(t, c, "a"), "old")
}
