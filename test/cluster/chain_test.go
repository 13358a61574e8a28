package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// jwt lets the world's service account log in at Conjur with a token of its
// own, which Conjur checks with the keys that the API server publishes. It
// gives the file with the token.
func (w *world) jwt() string {
	w.t.Helper()
	plane.AllowAnonymousDiscovery(w.t)
	subject := "system:serviceaccount:" + w.namespace + ":syncer"
	w.server.Policy(fmt.Sprintf(`
- !policy
  id: conjur/authn-jwt/cluster
  body:
  - !webservice
  - !variable jwks-uri
  - !variable ca-cert
  - !variable issuer
  - !variable audience
  - !variable token-app-property
  - !variable identity-path
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy
  id: workloads
  body:
  - !host { id: %q, annotations: { authn-jwt/cluster/sub: %q } }
- !grant { role: !group conjur/authn-jwt/cluster/apps, member: !host %q }
- !grant { role: !host app, member: !host %q }
`, subject, subject, "workloads/"+subject, "workloads/"+subject))
	for name, value := range map[string]string{
		"jwks-uri": plane.JWKSURL(), "ca-cert": string(plane.CA()), "issuer": plane.URL(), "audience": "conjur",
		"token-app-property": "sub", "identity-path": "workloads",
	} {
		w.server.Set("conjur/authn-jwt/cluster/"+name, value)
	}
	token := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(plane.Token(w.t, w.namespace, "syncer", "conjur")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return token
}

func TestServiceAccountTokenFillsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.variables("db/password")
	token := w.jwt()
	delete(w.env, "CONJUR_AUTHN_LOGIN")
	delete(w.env, "CONJUR_AUTHN_API_KEY")
	w.env["CONJUR_AUTHN_URL"] = w.server.URL + "/authn-jwt/cluster"
	w.env["JWT_TOKEN_PATH"] = token
	w.secret("db", map[string]string{"password": "db/password"})
	p := w.start()
	w.awaitData("db", map[string]string{"password": w.value["db/password"]})
	p.Stop()
}
