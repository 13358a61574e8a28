package conjurdtest_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const app = `
- !policy
  id: app
  body:
  - !variable password
  - !host web
  - !permit { role: !host web, privileges: [read, execute], resource: !variable password }
`

// send returns the status and body of a request.
func send(t *testing.T, c *http.Client, method, url, auth, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		req.Header.Set("Authorization", `Token token="`+base64.StdEncoding.EncodeToString([]byte(auth))+`"`)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestHostReadsVariable(t *testing.T) {
	s := conjurdtest.Start(t)
	s.Policy(app)
	s.Set("app/password", "s3cret")
	c := s.Client()
	status, token := send(t, c, "POST", s.URL+"/authn/dev/host%2Fapp%2Fweb/authenticate", "", s.HostKey("app/web"))
	if status != 200 {
		t.Fatalf("authenticate: status %d", status)
	}
	status, value := send(t, c, "GET", s.URL+"/secrets/dev/variable/app/password", token, "")
	if status != 200 || value != "s3cret" {
		t.Fatalf("read: status %d, value %q", status, value)
	}
	n := s.Counts()
	if n.Data != 1 || n.Authentications != 1 || n.Connections != 1 || n.DataBytes != 6 {
		t.Errorf("counted %+v", n)
	}
}

func TestMintedJWTLogsIn(t *testing.T) {
	s := conjurdtest.Start(t)
	s.EnableJWT("k8s", "apps", "system:serviceaccount:ns:sa")
	c := s.Client()
	login := func(token string) int {
		status, _ := send(t, c, "POST", s.URL+"/authn-jwt/k8s/dev/authenticate", "", url.Values{"jwt": {token}}.Encode())
		return status
	}
	if got := login(s.MintJWT("system:serviceaccount:ns:sa", time.Minute, nil)); got != 200 {
		t.Errorf("good JWT: status %d", got)
	}
	if got := login(s.MintJWT("system:serviceaccount:ns:sa", -time.Minute, nil)); got != 401 {
		t.Errorf("expired JWT: status %d", got)
	}
	if got := login(s.MintJWT("system:serviceaccount:ns:other", time.Minute, nil)); got != 401 {
		t.Errorf("JWT of no host: status %d", got)
	}
}

func TestIntercept(t *testing.T) {
	s := conjurdtest.Start(t)
	c := s.Client()
	s.Intercept(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	})
	if status, _ := send(t, c, "GET", s.URL+"/", "", ""); status != http.StatusBadGateway {
		t.Errorf("with a fault: status %d", status)
	}
	s.Intercept(nil)
	if status, _ := send(t, c, "GET", s.URL+"/", "", ""); status != http.StatusOK {
		t.Errorf("without: status %d", status)
	}
	if n := s.Counts().Other; n != 2 {
		t.Errorf("counted %d requests instead of 2", n)
	}
}

// A fault that waits for ever does not hold up the end of a test.
func TestWaitingFaultEndsWithTheTest(t *testing.T) {
	reached, left := make(chan struct{}), make(chan struct{})
	answered := make(chan error, 1)
	t.Run("inner", func(t *testing.T) {
		s := conjurdtest.Start(t)
		s.Intercept(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(reached)
				<-r.Context().Done()
				close(left)
			})
		})
		c := s.Client()
		go func() {
			res, err := c.Get(s.URL + "/whoami")
			if err == nil {
				err = res.Body.Close()
			}
			answered <- err
		}()
		<-reached
	})
	<-left
	if err := <-answered; err != nil {
		t.Errorf("the client is told %v", err)
	}
}
