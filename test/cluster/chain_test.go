package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// jwt lets the world's service account log in to Conjur by a token, which Conjur verifies
// with the public keys of the API server. It returns the file with the token.
func (w *world) jwt() string {
	w.Helper()
	plane.AllowAnonymousDiscovery(w)
	subject := "system:serviceaccount:" + w.namespace + ":syncer"
	host := "workloads/" + subject
	w.Server.Policy(fmt.Sprintf(`
- !policy
  id: workloads
  body:
  - !host { id: %q, annotations: { authn-jwt/cluster/sub: %q } }
- !grant { role: !host app, member: !host %q }
`, subject, subject, host))
	w.Server.Enable("authn-jwt/cluster", map[string]string{
		"jwks-uri": plane.JWKSURL(), "ca-cert": string(plane.CA()), "issuer": plane.URL(), "audience": "conjur",
		"token-app-property": "sub", "identity-path": "workloads",
	}, host)
	token := filepath.Join(w.TempDir(), "token")
	if err := os.WriteFile(token, []byte(plane.Token(w, w.namespace, "syncer", "conjur")), 0o600); err != nil {
		w.Fatal(err)
	}
	return token
}

func TestServiceAccountTokenFillsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/password")
	token := w.jwt()
	delete(w.Env, "CONJUR_AUTHN_LOGIN")
	delete(w.Env, "CONJUR_AUTHN_API_KEY")
	w.Env["CONJUR_AUTHN_URL"] = w.Server.URL + "/authn-jwt/cluster"
	w.Env["JWT_TOKEN_PATH"] = token
	w.secret("db", map[string]string{"password": "db/password"})
	p := w.start()
	w.awaitData("db", map[string]string{"password": w.Value["db/password"]})
	p.Stop()
}
