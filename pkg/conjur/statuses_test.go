package conjur_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// before asks something before each authentication.
type before struct {
	conjur.Authenticator
	url string
}

func (b before) Credential(ctx context.Context, send conjur.Send) (conjur.Credential, error) {
	req, err := http.NewRequest(http.MethodGet, b.url+"/authn-k8s/x/inject", nil)
	if err == nil {
		err = send(ctx, req)
	}
	if err != nil {
		return conjur.Credential{}, err
	}
	return b.Authenticator.Credential(ctx, send)
}

// TestBoundsOfStatuses of answers that change something, or precede that.
func TestBoundsOfStatuses(t *testing.T) {
	for _, c := range []struct {
		status                int
		sent, refused, paused bool
	}{
		{200, true, false, false}, {202, true, false, false}, {299, true, false, false}, {300, false, false, false}, {399, false, false, false},
		{400, false, true, false}, {429, false, true, true}, {499, false, true, false}, {500, false, false, true}, {503, false, false, true},
	} {
		d := conjurtest.New()
		d.Set("a", "value")
		pause := false
		d.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool {
			path, changes := r.URL.Path, r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/authenticate")
			if strings.HasSuffix(path, "/inject") || changes {
				w.Header().Set("Content-Type", "application/json")
				if pause {
					w.Header().Set("Retry-After", "60")
				}
				w.WriteHeader(c.status)
				if changes {
					_, _ = w.Write([]byte(`{"error":{"details":{"variables":[{"id":"a","code":"not_found"}]}}}`))
				}
				return true
			}
			return false
		})
		sending := start(t, d, func(c *conjur.Config) { c.Authenticator = before{c.Authenticator, c.ApplianceURL} })
		if v := fetch(t, sending, "a"); (v.Form == conjur.Given) != c.sent {
			t.Errorf("status %d before the authentication: %v", c.status, v.Err)
		}
		setting := start(t, d, nil)
		err := setting.SetAll(t.Context(), newValues("a", "new"))
		if _, refused := errors.AsType[*conjur.RefusedError](err); refused != c.refused {
			t.Errorf("status %d for an atomic set: %v", c.status, err)
		}
		pause = true
		_ = setting.SetAll(t.Context(), newValues("a", "new"))
		var paused *conjur.PauseError
		if v := fetch(t, setting, "a"); errors.As(v.Err, &paused) != c.paused {
			t.Errorf("status %d with Retry-After: %v", c.status, v.Err)
		}
	}
}

// TestBoundsOfKeys: an API key has 16 bytes at least.
func TestBoundsOfKeys(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 15: false, 16: true, 17: true} {
		d := conjurtest.New()
		d.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool {
			rotates := r.Method == http.MethodPut
			if rotates {
				_, _ = w.Write([]byte(strings.Repeat("k", n)))
			}
			return rotates
		})
		if key, err := start(t, d, nil).RotateKey(t.Context(), "other"); (err == nil) != ok || ok && key.Len() != n {
			t.Errorf("a key of %d bytes: %v", n, err)
		}
	}
}

func TestPolicyFaultsNameTheirLines(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"bad","line":0,"column":3}}`: "bad", `{"error":{"message":"bad","line":1,"column":3}}`: "line 1, column 3: bad",
		`{"errors":[{"message":"a","line":2,"column":1},{"message":"b"}]}`: "line 2, column 1: a; b", `{"error":{"line":1}}`: "",
	} {
		d := conjurtest.New()
		status := http.StatusUnprocessableEntity
		d.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool {
			loads := strings.HasPrefix(r.URL.Path, "/policies/")
			if loads {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			}
			return loads
		})
		c := start(t, d, nil)
		for _, status = range []int{http.StatusUnprocessableEntity, http.StatusCreated} {
			answer, err := c.LoadPolicy(t.Context(), conjur.PolicyChange{Method: http.MethodPost, Branch: "root", Text: []byte("- !user a")})
			faults, faulty := errors.AsType[*conjur.PolicyError](err)
			if faulty != (want != "") || faulty && faults.Error() != want {
				t.Errorf("status %d, %s: %v", status, body, err)
			}
			if want == "" && (status == http.StatusCreated) != (string(answer) == body) {
				t.Errorf("status %d, %s: answer %s, %v", status, body, answer, err)
			}
		}
	}
}
