package clouds

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestAnIdentityOfAnotherIssuer: Syncer reads GOOGLE_APPLICATION_CREDENTIALS, exchanges a
// token of the Pod, and acts as a service account.
func TestAnIdentityOfAnotherIssuer(t *testing.T) {
	const account, pool = "/v1/projects/-/serviceAccounts/syncer@acme.iam.gserviceaccount.com:generateAccessToken", "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k"
	s := newSite(t)
	var g *GCP
	g = NewGCP(t, shop, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/token":
				_ = r.ParseForm()
				if !maps.EqualFunc(r.Form, url.Values{
					"audience": {pool}, "subject_token": {"of the Pod"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}, "scope": {googleScope},
					"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
				}, slices.Equal) {
					reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_target"})
					return
				}
				reply(w, http.StatusOK, map[string]any{"access_token": "exchanged", "expires_in": 3600, "token_type": "Bearer"})
			case account:
				body, _ := io.ReadAll(r.Body)
				if r.Header.Get("Authorization") != "Bearer exchanged" || string(body) != `{"lifetime":"3600s","scope":["`+googleScope+`"]}` {
					reply(w, http.StatusForbidden, google("PERMISSION_DENIED"))
					return
				}
				reply(w, http.StatusOK, map[string]any{"accessToken": *g.Token.Load(), "expireTime": time.Now().Add(time.Hour)})
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(change func(map[string]any)) string {
		has := map[string]any{
			"type": "external_account", "audience": pool, "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
			"service_account_impersonation_url": "https://iamcredentials.googleapis.com" + account,
			"credential_source":                 map[string]any{"file": write("token", "of the Pod\n")},
		}
		change(has)
		text, err := json.Marshal(has)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct{ file, want string }{
		"a token in a file": {file(func(map[string]any) {}), ""},
		"a token in JSON": {file(func(f map[string]any) {
			f["credential_source"] = map[string]any{"file": write("json", `{"id_token": "of the Pod"}`), "format": map[string]string{"type": "json", "subject_token_field_name": "id_token"}}
		}), ""},
		"the exchanged token itself": {file(func(f map[string]any) { f["service_account_impersonation_url"] = "" }), "does not accept the credentials of Syncer (401 UNAUTHENTICATED)"},
		"a pool that is not known":   {file(func(f map[string]any) { f["audience"] = "other" }), "does not accept a request for a token (400 invalid_target)"},
		"another address": {file(func(f map[string]any) {
			f["service_account_impersonation_url"] = "https://iamcredentials.googleapis.com.test/x"
		}), "must begin with https://iamcredentials.googleapis.com/"},
		"a program": {file(func(f map[string]any) {
			f["credential_source"] = map[string]any{"executable": map[string]string{"command": "/bin/true"}}
		}), "names no file"},
		"a user":  {`{"type": "authorized_user", "refresh_token": "s3cret"}`, `have the type "authorized_user"; Syncer supports`},
		"no JSON": {"s3cret", "are not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", write("credentials.json", c.file))
			_, err := g.keys(brisk(s.reader)).Prepare(t.Context(), versions.New("us"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("said %v, want %s", err, c.want)
			}
		})
	}
}
