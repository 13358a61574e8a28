package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

// rotates is a server with the policy that "rotate init" prints for a file, and
// the process that rotates its sets.
type rotates struct {
	*conjurdtest.Server
	t      *testing.T
	config string
	reader *conjur.Client
}

func newRotates(t *testing.T, settings string) *rotates {
	t.Helper()
	r := &rotates{Server: conjurdtest.Start(t), t: t, config: filepath.Join(t.TempDir(), "syncer.yaml")}
	if err := os.WriteFile(r.config, []byte("rotation:\n  interval: 1s\n"+settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, []string{"CONJUR_AUTHN_LOGIN=host/rotates"}, "rotate", "init", "--config", r.config)
	p.Exit(0)
	r.Policy("- !host rotates\n- !variable old\n- !variable { id: plain, annotations: { rotation/rotator: postgresql/password, rotation/ttl: PT1S, rotation/postgresql/password/length: 20 } }\n")
	r.Set("old", "adopted")
	r.Policy(p.Log())
	r.reader = judge(t, r.Server)
	return r
}

// judge is a client of the host that rotates.
func judge(t testing.TB, server *conjurdtest.Server) *conjur.Client {
	t.Helper()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: server.URL, Account: server.Account, CA: string(server.CA), RateLimit: 1e6,
		Authenticator: authn.APIKey{Login: "host/rotates", Key: secret.New([]byte(server.HostKey("rotates")))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (r *rotates) run(args ...string) (exit func(status int)) {
	r.t.Helper()
	return spawn(r.t, proctest.Environ(r.Env("rotates")), append([]string{"rotate"}, args...)...).Exit
}

// set returns a set as it is; one that has not begun has no versions.
func (r *rotates) set(id string) *versions.Document {
	r.t.Helper()
	held, err := rotation.Set{Conjur: r.reader, ID: id}.Read(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if held.Document == nil {
		return versions.New("")
	}
	return held.Document
}

// until waits until the set jwt is as it should be.
func (r *rotates) until(what string, is func(d *versions.Document, primary versions.Version) bool) (primary versions.Version) {
	r.t.Helper()
	eventually(r.t, what, func() bool {
		d := r.set("jwt")
		primary, _ = d.Primary()
		return is(d, primary)
	})
	return primary
}

func (r *rotates) begun() versions.Version {
	r.t.Helper()
	return r.until("the set begins", func(_ *versions.Document, primary versions.Version) bool { return primary.ID != "" })
}

func (r *rotates) another(than versions.Version) versions.Version {
	r.t.Helper()
	return r.until("another primary", func(_ *versions.Document, primary versions.Version) bool { return primary.ID != than.ID })
}

// TestRotateRunByItsSettings has each setting and command decide what happens to
// a set.
func TestRotateRunByItsSettings(t *testing.T) {
	const jwt = "  sets: [{set: jwt, generate: {random: 32}, keep: 1h, confirm: {wait: 0s}%s}]\n"
	for name, c := range map[string]struct {
		settings string
		happens  func(*rotates)
	}{
		"cron": {fmt.Sprintf(jwt, `, cron: "* * * * *"`), func(r *rotates) {
			first := r.begun()
			second := r.another(first)
			if second.Made.Truncate(time.Minute).Equal(first.Made.Truncate(time.Minute)) {
				r.t.Errorf("made at %v and at %v", first.Made, second.Made)
			}
		}},
		"before": {"  sets: [{set: jwt, generate: {x509: {subject: shop, days: 1}}, before: 1d, keep: 1h, confirm: {wait: 0s}}]\n", func(r *rotates) {
			r.until("a second version", func(d *versions.Document, _ versions.Version) bool { return len(d.Versions) > 1 })
		}},
		"a certificate's authority": {`
  sets:
  - {set: roots, generate: {x509: {subject: root, authority: true, days: 30}}, confirm: {wait: 0s}}
  - {set: jwt, generate: {x509: {subject: shop, days: 1, ca: roots}}, confirm: {wait: 0s}}
`, func(r *rotates) {
			leaf := r.begun()
			root, _ := r.set("roots").Primary()
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(root.Parts["crt"].Bytes())
			block, _ := pem.Decode(leaf.Parts["crt"].Bytes())
			crt, err := x509.ParseCertificate(block.Bytes)
			if err == nil {
				_, err = crt.Verify(x509.VerifyOptions{Roots: roots})
			}
			if err != nil {
				r.t.Error(err)
			}
		}},
		"adopt": {fmt.Sprintf(jwt, ", adopt: {key: old}"), func(r *rotates) {
			first := r.begun()
			r.run("now", "jwt")(0)
			second := r.another(first)
			if string(first.Parts["key"].Bytes()) != "adopted" || second.Parts["key"].Len() != 32 {
				r.t.Errorf("the first version is not what was adopted, or the second one is")
			}
		}},
		"fromPolicy": {"  every: 30d\n  fromPolicy: true\n  sets: [{set: jwt, generate: {password: {}}, publish: {plain: password}, confirm: {wait: 0s}}]\n", func(r *rotates) {
			first := r.begun()
			if second := r.another(first); first.Parts["password"].Len() != 20 || second.Parts["password"].Len() != 20 {
				r.t.Error("the passwords are not as long as the policy says")
			}
		}},
		"rollback": {fmt.Sprintf(jwt, ""), func(r *rotates) {
			first := r.begun()
			r.run("now", "jwt")(0)
			second := r.another(first)
			r.run("rollback", "jwt")(0)
			if back := r.another(second); back.ID != first.ID {
				r.t.Errorf("%s is the primary, not %s", back.ID, first.ID)
			}
		}},
		"abort": {"  sets: [{set: jwt, generate: {random: 32}, confirm: {ask: 'http://127.0.0.1:1/keys'}}]\n", func(r *rotates) {
			first := r.begun()
			r.run("now", "jwt")(0)
			r.until("a version that nobody has", func(d *versions.Document, _ versions.Version) bool { return d.Stage() == "introduce" })
			r.run("abort", "jwt")(0)
			r.until("it was given up", func(d *versions.Document, primary versions.Version) bool {
				_, coming := d.Coming()
				return !coming && primary.ID == first.ID
			})
		}},
		"pause and resume": {fmt.Sprintf(jwt, ""), func(r *rotates) {
			first := r.begun()
			r.run("pause", "jwt")(0)
			r.until("paused", func(d *versions.Document, _ versions.Version) bool { return d.Paused })
			r.run("resume", "jwt")(0)
			r.until("resumed", func(d *versions.Document, _ versions.Version) bool { return !d.Paused })
			r.run("now", "jwt")(0)
			r.another(first)
		}},
		"paused": {"  paused: true\n" + fmt.Sprintf(jwt, ""), func(r *rotates) {
			r.run("run", "--once", "--config", r.config)(0)
			if d := r.set("jwt"); len(d.Versions) > 0 {
				r.t.Errorf("it has begun: %v", d.Log)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotates(t, c.settings)
			if !strings.Contains(c.settings, "127.0.0.1:1") {
				r.run("check", "--config", r.config)(0)
			}
			r.run("run", "--config", r.config)
			c.happens(r)
		})
	}
}
