package authn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

const token = "head." + canary + ".sign"

func azureToken(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"access_token":%q,"expires_in":"86399","token_type":"Bearer"}`, token)
}

func gcpToken(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, token+"\n") }

func TestAzure(t *testing.T) {
	m := cloudtest.NewService(t, azureToken)
	for login, path := range map[string]string{
		"host/apps/web": "/authn-azure/prod/dev/host%2Fapps%2Fweb/authenticate",
		"apps/web":      "/authn-azure/prod/dev/host%2Fapps%2Fweb/authenticate",
	} {
		f := newFake(t)
		c := f.client(authn.Azure{URL: "https://conjur.test/authn-azure/prod", Login: login, ClientID: "user assigned", Metadata: m.URL + "/"})
		wantFound(t, c)
		got := f.log()
		if len(got) != 1 || got[0].path != path || got[0].body != "jwt="+token || got[0].contentType != "application/x-www-form-urlencoded" {
			t.Errorf("got %+v", got)
		}
		asked := m.Log()[0]
		q := asked.URL.Query()
		if asked.URL.Path != "/metadata/identity/oauth2/token" || q.Get("api-version") != "2018-02-01" || q.Get("resource") != "https://management.azure.com/" ||
			q.Get("client_id") != "user assigned" || asked.Header.Get("Metadata") != "true" {
			t.Errorf("asked %+v", asked)
		}
	}
}

func TestGCP(t *testing.T) {
	m := cloudtest.NewService(t, gcpToken)
	for _, login := range []string{"host/apps/web", "apps/web"} {
		f := newFake(t)
		c := f.client(authn.GCP{URL: "https://conjur.test/authn-gcp", Account: "dev", Login: login, Metadata: m.URL})
		wantFound(t, c)
		got := f.log()
		if len(got) != 1 || got[0].path != "/authn-gcp/dev/authenticate" || got[0].body != "jwt="+token {
			t.Errorf("got %+v", got)
		}
		asked := m.Log()[0]
		q := asked.URL.Query()
		if asked.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/identity" || q.Get("audience") != "conjur/dev/host/apps/web" ||
			q.Get("format") != "full" || asked.Header.Get("Metadata-Flavor") != "Google" {
			t.Errorf("asked %+v", asked)
		}
	}
}

// clouds are the two, each with its own answer.
func clouds(m *cloudtest.Service) map[string]conjur.Authenticator {
	return map[string]conjur.Authenticator{
		"azure": authn.Azure{URL: "https://conjur.test/authn-azure/prod", Login: "host/web", Metadata: m.URL},
		"gcp":   authn.GCP{URL: "https://conjur.test/authn-gcp", Account: "dev", Login: "host/web", Metadata: m.URL},
	}
}

// The token is asked for at each authentication, since it ends.
func TestMetadataIsAskedEachTime(t *testing.T) {
	n := 0
	m := cloudtest.NewService(t, func(w http.ResponseWriter, _ *http.Request) { n++; fmt.Fprintf(w, "a.%d.c", n) })
	f := newFake(t)
	c := f.client(clouds(m)["gcp"])
	wantFound(t, c)
	wantFound(t, c)
	if got := f.log(); len(got) != 2 || got[0].body != "jwt=a.1.c" || got[1].body != "jwt=a.2.c" {
		t.Errorf("got %+v", got)
	}
}

// Whatever the metadata service does: unknown, named, and Conjur is not asked.
func TestMetadataThatIsNone(t *testing.T) {
	elsewhere := cloudtest.NewService(t, gcpToken)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirecting": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "it answered 307"},
		"HTML":      {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>"+canary+"</html>") }, "the answer is not"},
		"error":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); io.WriteString(w, canary) }, "it answered 500"},
		"too long":  {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 100_000)) }, "longer than 65536"},
		"empty":     {func(http.ResponseWriter, *http.Request) {}, "the answer is not"},
		"no HTTP":   {hijacked(canary + "\r\n\r\n"), "not HTTP"},
		"torn":      {hijacked("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + canary), "closed before the answer ended"},
		"two words": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"access_token":"a.b.c d"}`) }, "the answer is not a token"},
	} {
		m := cloudtest.NewService(t, c.answer)
		for cloud, a := range clouds(m) {
			t.Run(name+" "+cloud, func(t *testing.T) {
				f := newFake(t)
				wantUnknown(t, f.client(a), "metadata service", c.want)
				if got := f.log(); len(got) != 0 {
					t.Errorf("Conjur was asked: %+v", got)
				}
				m.Answer(func(w http.ResponseWriter, r *http.Request) {
					if cloud == "azure" {
						azureToken(w, r)
						return
					}
					gcpToken(w, r)
				})
				wantFound(t, f.client(a))
				m.Answer(c.answer)
			})
		}
	}
	if len(elsewhere.Log()) > 0 {
		t.Error("a redirect was followed")
	}
}

func hijacked(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

// Who asks may have less time than a service that says nothing is given.
func TestSilenceIsNamed(t *testing.T) {
	silent := cloudtest.NewService(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	bareAWS(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": silent.URL})
	for name, a := range map[string]conjur.Authenticator{
		"Azure's metadata service at 127.0.0.1:":        authn.Azure{Login: "web", Metadata: silent.URL},
		"Google Cloud's metadata service at 127.0.0.1:": authn.GCP{Login: "web", Metadata: silent.URL},
		"AWS's credentials: none found yet":             &authn.IAM{Login: "web"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := a.Credential(ctx, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// A service that says nothing is given up after its time.
func TestMetadataThatIsSilent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the kernel accepts, and nobody reads
	f := newFake(t)
	wantUnknown(t, f.client(authn.GCP{Login: "web", Metadata: "http://127.0.0.1:1"}), "Google Cloud's metadata service at 127.0.0.1:1", "refused")
	wantUnknown(t, f.client(authn.Azure{Login: "web", Metadata: "http://" + l.Addr().String()}), "no complete answer within 10s")
	if got := f.log(); len(got) != 0 {
		t.Errorf("Conjur was asked: %+v", got)
	}
}
