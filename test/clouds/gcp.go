package clouds

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// GCP is Google Cloud's IAM, its token service and the metadata service, with one service
// account.
type GCP struct {
	Cloud
	Account string
	// Token is the access token that calls must have.
	Token atomic.Pointer[string]
}

// private returns RSA keys, which take long to make. Keys of an account share them.
var private = sync.OnceValue(func() (keys []*rsa.PrivateKey) {
	for range 2 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

// NewGCP starts one. before puts faults before it; nil puts none.
func NewGCP(t testing.TB, account string, before func(http.Handler) http.Handler) *GCP {
	g := &GCP{Account: account}
	g.Limit = 10
	g.Renew()
	g.start(t, g.serve, before)
	return g
}

// Renew makes all access tokens expire.
func (g *GCP) Renew() {
	token := rand.Text()
	g.Token.Store(&token)
}

// The address that issues the tokens of Google, and the scope of the tokens.
const (
	googleTokens = "https://oauth2.googleapis.com/token"
	googleScope  = "https://www.googleapis.com/auth/cloud-platform"
)

// File returns key.json of a key.
func (g *GCP) File(k Key) []byte {
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "acme", "private_key_id": k.ID, "private_key": k.Secret,
		"client_email": g.Account, "token_uri": googleTokens,
	})
	if err != nil {
		panic(err)
	}
	return file
}

func (g *GCP) serve(w http.ResponseWriter, r *http.Request) {
	account := "/v1/projects/acme/serviceAccounts/" + g.Account
	below, known := strings.CutPrefix(r.URL.Path, account)
	switch {
	case g.throttled(w):
		reply(w, http.StatusTooManyRequests, google("RESOURCE_EXHAUSTED"))
	case r.URL.Path == "/token":
		g.exchange(w, r)
	case strings.HasPrefix(r.URL.Path, "/computeMetadata/") && r.Header.Get("Metadata-Flavor") == "Google":
		reply(w, http.StatusOK, map[string]any{"access_token": *g.Token.Load(), "expires_in": 3600})
	case r.Header.Get("Authorization") != "Bearer "+*g.Token.Load():
		reply(w, http.StatusUnauthorized, google("UNAUTHENTICATED"))
	case strings.HasSuffix(r.URL.Path, "/activities:query"):
		g.activities(w, r)
	case !known:
		reply(w, http.StatusNotFound, google("NOT_FOUND"))
	default:
		g.act(w, r, below)
	}
}

func google(status string) any {
	return map[string]any{"error": map[string]any{"message": "it quotes the request", "status": status}}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (g *GCP) act(w http.ResponseWriter, r *http.Request, below string) {
	id, verb, _ := strings.Cut(strings.TrimPrefix(below, "/keys/"), ":")
	switch call := r.Method + " " + verb; {
	case g.denies(call):
		reply(w, http.StatusForbidden, google("PERMISSION_DENIED"))
	case below == ":testIamPermissions" && r.Method == http.MethodPost:
		reply(w, http.StatusOK, map[string]any{"permissions": []string{
			"iam.serviceAccountKeys.create", "iam.serviceAccountKeys.delete", "iam.serviceAccountKeys.disable", "iam.serviceAccountKeys.list"}})
	case below == "/keys" && r.Method == http.MethodGet:
		list := []any{}
		for _, k := range g.seen() {
			list = append(list, map[string]any{"name": g.name(k.ID), "validAfterTime": k.Created.UTC().Format(time.RFC3339), "disabled": !k.Active, "keyOrigin": cmp.Or(k.Mark, "GOOGLE_PROVIDED")})
		}
		reply(w, http.StatusOK, map[string]any{"keys": list})
	case below == "/keys":
		key := g.New()
		if !g.add(&key) {
			reply(w, http.StatusBadRequest, google("FAILED_PRECONDITION"))
			return
		}
		reply(w, http.StatusOK, map[string]any{"name": g.name(key.ID), "privateKeyData": base64.StdEncoding.EncodeToString(g.File(key))})
	case verb == "disable" && g.Change(id, false), r.Method == http.MethodDelete && g.Remove(id):
		reply(w, http.StatusOK, map[string]any{})
	default:
		reply(w, http.StatusNotFound, google("NOT_FOUND"))
	}
}

// New returns a key that the account does not have yet.
func (g *GCP) New() Key {
	keys := private()
	der := x509.MarshalPKCS1PrivateKey(keys[len(g.Keys())%len(keys)])
	return Key{ID: strings.ToLower(rand.Text()), Secret: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}))}
}

func (g *GCP) name(id string) string {
	return "projects/acme/serviceAccounts/" + g.Account + "/keys/" + id
}

// activities answers when a key was used. The genuine service is a day or two late.
func (g *GCP) activities(w http.ResponseWriter, r *http.Request) {
	list := []any{}
	for _, k := range g.Keys() {
		if strings.HasSuffix(r.URL.Query().Get("filter"), "/keys/"+k.ID+`"`) && !k.Used.IsZero() {
			list = append(list, map[string]any{"activity": map[string]any{"lastAuthenticatedTime": k.Used.UTC().Format(time.RFC3339)}})
		}
	}
	reply(w, http.StatusOK, map[string]any{"activities": list})
}

// exchange gives a token for a signed assertion.
func (g *GCP) exchange(w http.ResponseWriter, r *http.Request) {
	var id string
	var claims struct {
		jwt.RegisteredClaims
		Scope string
	}
	_, err := jwt.ParseWithClaims(r.FormValue("assertion"), &claims, func(t *jwt.Token) (any, error) {
		id, _ = t.Header["kid"].(string)
		for _, k := range g.seen() {
			if k.ID == id {
				private, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(k.Secret))
				return private.Public(), err
			}
		}
		return nil, fmt.Errorf("no key %s", id)
	}, jwt.WithTimeFunc(g.Now), jwt.WithIssuedAt(), jwt.WithIssuer(g.Account), jwt.WithAudience(googleTokens), jwt.WithExpirationRequired(), jwt.WithLeeway(10*time.Second))
	if err != nil || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || claims.Scope != googleScope || !g.use(id, func(Key) bool { return true }) {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "it quotes the assertion"})
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": *g.Token.Load(), "expires_in": 3600})
}

// SignIn requests a token with a key file, as an application does.
func (g *GCP) SignIn(file []byte) error {
	var has struct {
		ID      string `json:"private_key_id"`
		Private string `json:"private_key"`
	}
	if err := json.Unmarshal(file, &has); err != nil {
		return err
	}
	private, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(has.Private))
	if err != nil {
		return err
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": g.Account, "aud": googleTokens, "scope": googleScope, "iat": g.Now().Unix(), "exp": g.Now().Add(time.Minute).Unix()})
	token.Header["kid"] = has.ID
	assertion, err := token.SignedString(private)
	if err != nil {
		return err
	}
	return post(g.URL+"/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}})
}

// post sends a form, and returns an error unless the answer is 200.
func post(to string, values url.Values) error {
	res, err := http.PostForm(to, values)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", res.StatusCode, said)
	}
	return nil
}
