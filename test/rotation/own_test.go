package rotation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// loggedIn is a consumer that uses the login of the last authentication. It takes that login
// from the path of the request.
type loggedIn struct{ last atomic.Pointer[string] }

func (*loggedIn) Introduced(context.Context, *versions.Document, versions.Version, []rotation.Shown) rotation.Answer {
	return rotation.Answer{Open: true}
}

func (l *loggedIn) Left(_ context.Context, doc *versions.Document, _ versions.Version, _ []rotation.Shown) rotation.Answer {
	primary, _ := doc.Primary()
	last := l.last.Load()
	return soon(rotation.Answer{Open: last != nil && strings.Contains(*last, "/"+string(primary.Parts["login"].Bytes())+"/"), Waits: "a log-in"})
}

// TestItsOwnIdentityIsRotated while a sidecar delivers: the file with its own login is one
// of its targets. No request is refused, and no refresh is missed.
func TestItsOwnIdentityIsRotated(t *testing.T) {
	t.Parallel()
	s := newShopOf(t, postgres, conjurdtest.TokenTTL(8*time.Second)) // renewed after six
	s.Policy(`
- !host own-a
- !host own-b
- !group own
- !grant { role: !group own, members: [!host own-a, !host own-b] }
- !permit { role: !group own, privileges: [read, execute], resources: [!variable shop/db, !variable shop/url] }
- !permit { role: !host rotates, privileges: [update], resources: [!host own-a, !host own-b] }
`)
	var refused atomic.Int64
	var sidecar loggedIn
	s.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.UserAgent(), "engine") {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(watched{w, &refused}, r)
			if strings.HasSuffix(r.URL.Path, "/authenticate") {
				sidecar.last.Store(&r.URL.Path)
			}
		})
	})
	client := s.as("rotates", "engine")
	keys := &actuators.APIKeys{Hosts: []string{"own-a", "own-b"}, Conjur: client, Set: func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		return held.Document, err
	}}
	dir := t.TempDir()
	identity, url := filepath.Join(dir, "secrets", "identity"), filepath.Join(dir, "secrets", "url")
	engine := s.rotator(client, keys, &sidecar, func(c *rotation.Config) { c.Sets[0].Generate = generate.Config{} })
	run(t, engine)
	var primary versions.Version
	s.Until("the first key", func(d *versions.Document) (is bool) { primary, is = d.Primary(); return is })
	first := filepath.Join(dir, "first")
	if err := os.WriteFile(first, fmt.Appendf(nil, "%s %s\n", primary.Parts["login"].Bytes(), primary.Parts["apiKey"].Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Set("shop/url", "0")
	if err := os.Mkdir(filepath.Dir(identity), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(first, identity); err != nil {
		t.Fatal(err)
	}
	env := s.Env("own-a")
	delete(env, "CONJUR_AUTHN_API_KEY")
	env["CONJUR_AUTHN_API_KEY_FILE"] = identity
	s.deliver(dir, `conjur.org/container-mode="sidecar"
conjur.org/secrets-destination="file"
conjur.org/secrets-refresh-interval="1s"
conjur.org/conjur-secrets.identity="- own: {credential: shop/db}"
conjur.org/secret-file-template.identity="{{range versions \"own\"}}{{if .Primary}}{{.Part \"login\"}} {{.Part \"apiKey\"}}{{end}}{{end}}"
conjur.org/secret-file-format.identity="template"
conjur.org/secret-file-path.identity="./identity"
conjur.org/conjur-secrets.url="- url: shop/url"
conjur.org/secret-file-template.url="{{secret \"url\"}}"
conjur.org/secret-file-format.url="template"
conjur.org/secret-file-path.url="./url"
`, 3*time.Second, env)
	for turn := range 3 {
		s.Rotate()
		value := fmt.Sprint("value ", turn)
		s.Set("shop/url", value)
		proctest.Eventually(t, "the value in the file", func() bool {
			text, _ := os.ReadFile(url)
			return string(text) == value
		})
	}
	if n := refused.Load(); n > 0 {
		t.Errorf("%d requests were refused", n)
	}
}

// watched counts answers of 401.
type watched struct {
	http.ResponseWriter
	refused *atomic.Int64
}

func (w watched) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.refused.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}
