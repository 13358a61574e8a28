package cloudtest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// Issuer signs identity tokens. It serves a discovery document and a key set.
type Issuer struct {
	*Service
	now func() time.Time
	key *rsa.PrivateKey

	claims map[string]any
}

// NewIssuer starts an issuer. now is its clock.
func NewIssuer(t testing.TB, now func() time.Time) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{now: now, key: key, claims: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "kid": "k", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(key.N.Bytes())}}})
	})
	i.Service = NewService(t, mux.ServeHTTP)
	return i
}

// Token signs claims. The token expires after ten minutes, unless the claims set an
// expiry.
func (i *Issuer) Token(claims map[string]any) string {
	now := i.now()
	all := jwtlib.MapClaims{"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix()}
	maps.Copy(all, claims)
	token := jwtlib.NewWithClaims(jwtlib.SigningMethodRS256, all)
	token.Header["kid"] = "k"
	text, err := token.SignedString(i.key)
	if err != nil {
		panic(err) // only if claims are not JSON
	}
	return text
}

// Claims returns the claims that the metadata service's tokens make about the
// machine.
func (i *Issuer) Claims() map[string]any {
	return maps.Clone(i.claims)
}

// The claims that the fakes of Azure and Google Cloud make about their machine.
const (
	Subscription  = "subscription-1"
	ResourceGroup = "group-1"
	Object        = "object-1" // the machine's system-assigned identity
	Project       = "project-1"
	Instance      = "instance-1"
)

// Azure is a machine on Azure. The URL of its issuer is the provider-uri.
type Azure struct {
	*Issuer
	Metadata *Service
}

// NewAzure starts the services of a machine with a system-assigned identity.
func NewAzure(t testing.TB, now func() time.Time) *Azure {
	a := &Azure{Issuer: NewIssuer(t, now)}
	a.claims = map[string]any{
		"iss": a.URL + "/", "aud": "https://management.azure.com/", "oid": Object,
		"xms_mirid": "/subscriptions/" + Subscription + "/resourcegroups/" + ResourceGroup + "/providers/Microsoft.Compute/virtualMachines/vm",
	}
	a.Metadata = NewService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metadata/identity/oauth2/token" || r.Header.Get("Metadata") != "true" || r.FormValue("resource") != "https://management.azure.com/" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":"600","token_type":"Bearer"}`, a.Token(a.Claims()))
	})
	return a
}

// GCP is a machine on Google Cloud. The URL of its issuer is the "iss" of its
// tokens.
type GCP struct {
	*Issuer
	Metadata *Service
}

// NewGCP starts the services of a machine with a service account. Its tokens have
// the requested audience, unless their claim "aud" is set.
func NewGCP(t testing.TB, now func() time.Time) *GCP {
	g := &GCP{Issuer: NewIssuer(t, now)}
	g.claims = map[string]any{
		"iss": g.URL, "sub": "42", "email": "machine@" + Project,
		"google": map[string]any{"compute_engine": map[string]any{"project_id": Project, "instance_name": Instance}},
	}
	g.Metadata = NewService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/identity" || r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		claims := map[string]any{"aud": r.FormValue("audience")}
		maps.Copy(claims, g.Claims())
		if r.FormValue("format") != "full" {
			delete(claims, "google")
		}
		_, _ = io.WriteString(w, g.Token(claims))
	})
	return g
}
