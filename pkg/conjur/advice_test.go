package conjur

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
)

// Each failure that an operator meets names the likely cause and the next step.
func TestAFailureSaysWhatToDo(t *testing.T) {
	for says, err := range map[string]error{
		"a gateway may have answered":                    errBrokenAnswer,
		"set CONJUR_SSL_CERTIFICATE or CONJUR_CERT_FILE": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"check the port and whether the server runs":     &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"check the port and the scheme of the address":   errNoTLS,
		"check Conjur's load and the NetworkPolicy":      fmt.Errorf("%w 10s", errTimeout),
	} {
		got := advise(err)
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), err.Error()+"; ") || !strings.Contains(got.Error(), says) {
			t.Errorf("%v: it should say %q", got, says)
		}
	}
	if err := errors.New("another"); advise(err).Error() != err.Error() {
		t.Error("an error without a known cause has got one")
	}
}

func TestAStatusSaysWhatToDo(t *testing.T) {
	for says, e := range map[string]StatusError{
		"check the login, the key or token":       {Kind: KindAuthenticate, Status: http.StatusUnauthorized},
		"grant it the privilege authenticate":     {Kind: KindLogin, Status: http.StatusForbidden},
		"check the account and the authenticator": {Kind: KindAuthenticate, Status: http.StatusNotFound},
		"check Conjur's clock":                    {Kind: KindBatch, Status: http.StatusUnauthorized},
		"grant it read and execute":               {Kind: KindVariable, Status: http.StatusForbidden},
		"grant it update":                         {Kind: KindSet, Status: http.StatusForbidden},
		"check that the identity exists":          {Kind: KindList, Status: http.StatusForbidden},
		"check the id, the privilege read":        {Kind: KindSetAll, Status: http.StatusNotFound},
		"raise the limit":                         {Kind: KindBatch, Status: http.StatusTooManyRequests},
		"see Conjur's log":                        {Kind: KindVariable, Status: http.StatusInternalServerError},
		"check their health":                      {Kind: KindAuthenticate, Status: http.StatusServiceUnavailable},
		"set the address to which it redirects":   {Kind: KindWhoami, Status: http.StatusFound},
		"list Conjur in NO_PROXY":                 {Kind: KindBatch, Status: http.StatusProxyAuthRequired},
	} {
		if !strings.Contains(e.Error(), says) {
			t.Errorf("%v: it should say %q", &e, says)
		}
	}
	if e := (&StatusError{Kind: KindWhoami, Status: http.StatusOK, Detail: "strange"}); e.Error() != "whoami: the server answered 200: strange" {
		t.Errorf("%v", e)
	}
}

// fixedKey authenticates with a key.
type fixedKey struct{}

func (fixedKey) Credential(context.Context, Send) (Credential, error) {
	return Credential{Login: "host/app", Body: secret.New([]byte("canary"))}, nil
}

// Each answer that is not Conjur's has a sentence that names the setting to change, and
// shows nothing that was received besides an address.
func TestAStrangeAnswerSaysWhatToDo(t *testing.T) {
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusMovedPermanently) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	page := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "<html>canary</html>")
		}
	}
	frames := func(w http.ResponseWriter, r *http.Request) { // what an HTTP/2 server begins with
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(conn, "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")
		_ = conn.Close()
	}
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"account":"dev","username":"canary"}`)
		_ = z.Close()
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		proxy  bool // answer is that of the proxy
		path   string
		says   string
	}{
		"proxy with a login":       {status(407), true, "", "the proxy answered 407; it requires a login: list Conjur in NO_PROXY"},
		"proxy that forbids":       {status(403), true, "", "the proxy answered 403; let it pass Conjur, or list Conjur in NO_PROXY"},
		"gateway with a login":     {status(407), false, "", "list Conjur in NO_PROXY"},
		"compressed":               {zipped, false, "", "the answer is compressed, which Syncer did not ask for; switch off compression for Conjur in the gateway"},
		"HTTP/2":                   {frames, false, "", "the server speaks only HTTP/2; let it, or the gateway before it, speak HTTP/1.1 too"},
		"HTTP version refused":     {status(505), false, "", "speak HTTP/1.1"},
		"upgrade required":         {status(426), false, "", "speak HTTP/1.1"},
		"redirect to a prefix":     {redirect("https://conjur.example.com/api/authn/dev/host%2Fapp/authenticate?canary"), false, "", "set the address https://conjur.example.com/api"},
		"redirect with the prefix": {redirect("https://other.example.com/api/authn/dev/host%2Fapp/authenticate"), false, "/api", "set the address https://other.example.com/api"},
		"redirect to a page":       {redirect("https://canary:canary@conjur.example.com/login?next=canary"), false, "", "it redirects to https://conjur.example.com; set Conjur's address"},
		"redirect to nowhere":      {redirect("canary"), false, "", "set the address to which it redirects"},
		"page instead of Conjur":   {page(200), false, "", "/api if this is Conjur Enterprise or Conjur Cloud"},
		"no such page":             {page(404), false, "", "/api if this is Conjur Enterprise or Conjur Cloud"},
		"no such page, prefixed":   {page(404), false, "/api", "check the account and the authenticator in the address"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			address := server.URL + c.path
			if c.proxy {
				address = "https://conjur.invalid"
			}
			client, err := New(Config{ApplianceURL: address, Account: "dev", Authenticator: fixedKey{}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			transport := client.transport.now().Transport.(*http.Transport)
			transport.Proxy = nil
			if c.proxy {
				transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(server.URL) }
			}
			_, _, err = client.authenticateOnce(t.Context())
			if text := fmt.Sprint(err); !strings.Contains(text, c.says) || strings.Contains(text, "canary") {
				t.Errorf("it says %q, want %q and nothing else that was received", text, c.says)
			}
			if strings.HasSuffix(name, "prefixed") && strings.Contains(err.Error(), "Enterprise") {
				t.Errorf("it says %q", err)
			}
		})
	}
}
