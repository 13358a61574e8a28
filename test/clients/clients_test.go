// Package clients runs the official Go client's own tests against conjurd --strict. They
// are compiled in their module with the versions in this module's go.sum.
//
// The official command line and the provider of Terraform are not run, because the Go
// module proxy does not serve their modules.
package clients

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	_ "github.com/cyberark/conjur-api-go/conjurapi" // keeps its tests in go.sum
	jwtlib "github.com/golang-jwt/jwt/v5"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// exceptions are the tests that fail, with the reason. A test without a slash counts with
// all its subtests.
var exceptions = map[string]string{
	"TestClient_Issuer":                            issuers,
	"TestClient_Issuers":                           issuers,
	"TestClient_CreateIssuer":                      issuers,
	"TestClient_UpdateIssuer":                      issuers,
	"TestClient_DeleteIssuer":                      issuers,
	"TestClient_AuthenticatorCRUD":                 newer,
	"TestClientV2_AddGroupMember":                  newer,
	"TestClientV2_RemoveGroupMember":               newer,
	"TestPolicy_DryRunPolicy":                      "the genuine server shows an error of its own code; conjurd names the cause",
	"TestClient_Token/Host_Factory/Create_Host#06": "the test expects that its requests do not come from 127.0.0.1",
}

const (
	issuers = "the genuine server has issuers only with a feature flag, and conjurd has none"
	newer   = "conjurd lacks these v2 routes"
)

// exception returns the reason why a test fails, or "".
func exception(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return cmp.Or(exceptions[name], exceptions[top])
}

func TestGoClient(t *testing.T) {
	s, err := conjurd.Open(conjurd.Options{Account: "conjur", Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	adminKey, err := s.APIKey(t.Context(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	keys, token := issue(t)

	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-count=1", "github.com/cyberark/conjur-api-go/conjurapi")
	cmd.Env = append(os.Environ(), "GOFLAGS=", // the tests find their files by the path of their source, so without -trimpath
		"HOME="+t.TempDir(), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"),
		"CONJUR_APPLIANCE_URL="+server.URL, "CONJUR_ACCOUNT=conjur", "CONJUR_AUTHN_LOGIN=admin", "CONJUR_AUTHN_API_KEY="+adminKey,
		"PUBLIC_KEYS="+keys, "JWT="+token)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	passed, failed, output := read(t, out)
	if passed == 0 {
		t.Fatalf("no test ran: %v\n%s", err, faults.String())
	}
	t.Logf("%d tests passed, %d failed", passed, len(failed))
	for name := range failed {
		switch reason := exception(name); {
		case hasFailedChild(name, failed):
		case reason != "":
			t.Logf("known: %s: %s", name, reason)
		default:
			t.Errorf("%s\n%s", name, output[name])
		}
	}
	for name := range exceptions {
		if !failed[name] {
			t.Errorf("%s passes, or is gone: remove the exception", name)
		}
	}
}

// hasFailedChild reports whether a test failed by one of its subtests.
func hasFailedChild(name string, failed map[string]bool) bool {
	for other := range failed {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// read returns from the output of "go test -json" how many tests passed, which failed, and
// their output.
func read(t *testing.T, out []byte) (passed int, failed map[string]bool, output map[string]string) {
	t.Helper()
	failed, output = map[string]bool{}, map[string]string{}
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(scan.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		switch event.Action {
		case "output":
			output[event.Test] += event.Output
		case "pass":
			passed++
		case "fail":
			failed[event.Test] = true
		}
	}
	return passed, failed, output
}

// issue returns a key set, and the JWT that the client's tests present.
func issue(t *testing.T) (keys, token string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k",
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	jwt := jwtlib.NewWithClaims(jwtlib.SigningMethodRS256, jwtlib.MapClaims{
		"iss": "jwt-server", "aud": "conjur", "sub": "test-workload", "email": "workload@example.com", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	jwt.Header["kid"] = "k"
	token, err = jwt.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), token
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
