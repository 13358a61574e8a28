package clouds

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Azure is Microsoft Graph, Entra ID and the metadata service, with one application.
type Azure struct {
	Cloud
	Application, Tenant string
	Admin               Key // logs in to Microsoft Graph
	Token               atomic.Pointer[string]
	Ends                atomic.Pointer[time.Time] // of the last secret
}

// NewAzure starts one. before puts faults before it; nil puts none.
func NewAzure(t testing.TB, before func(http.Handler) http.Handler) *Azure {
	a := &Azure{Application: "11111111-2222-3333-4444-555555555555", Tenant: "acme", Admin: Key{ID: "syncer", Secret: rand.Text()}}
	a.Limit = 100
	token := rand.Text()
	a.Token.Store(&token)
	a.start(t, a.serve, before)
	return a
}

// AdminJSON is the value of the administrator's variable.
func (a *Azure) AdminJSON() string {
	return fmt.Sprintf(`{"tenantId":%q,"clientId":%q,"clientSecret":%q}`, a.Tenant, a.Admin.ID, a.Admin.Secret)
}

func (a *Azure) serve(w http.ResponseWriter, r *http.Request) {
	call, known := strings.CutPrefix(r.URL.Path, "/v1.0/applications(appId='"+a.Application+"')")
	switch {
	case a.throttled(w):
		reply(w, http.StatusTooManyRequests, graph("activityLimitReached"))
	case r.URL.Path == "/"+a.Tenant+"/oauth2/v2.0/token":
		a.login(w, r)
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_tenant", "error_codes": []int{90002}})
	case r.URL.Path == "/metadata/identity/oauth2/token" && r.Header.Get("Metadata") == "true" && r.FormValue("resource") == graphAPI:
		reply(w, http.StatusOK, map[string]string{"access_token": *a.Token.Load(), "expires_in": "3599"})
	case r.Header.Get("Authorization") != "Bearer "+*a.Token.Load():
		reply(w, http.StatusUnauthorized, graph("InvalidAuthenticationToken"))
	case !known:
		reply(w, http.StatusNotFound, graph("Request_ResourceNotFound"))
	case a.denies(call):
		reply(w, http.StatusForbidden, graph("Authorization_RequestDenied"))
	default:
		a.act(w, r, call)
	}
}

func graph(code string) any {
	return map[string]any{"error": map[string]any{"message": "it quotes the request", "code": code}}
}

func (a *Azure) act(w http.ResponseWriter, r *http.Request, call string) {
	type password struct {
		KeyID       string    `json:"keyId"`
		DisplayName string    `json:"displayName"`
		End         time.Time `json:"endDateTime"`
	}
	var in struct {
		password
		Password password `json:"passwordCredential"`
	}
	if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&in) != nil {
		reply(w, http.StatusBadRequest, graph("Request_BadRequest"))
		return
	}
	switch {
	case call == "" && r.Method == http.MethodGet:
		list := []any{}
		for _, k := range a.seen() {
			list = append(list, map[string]any{"keyId": k.ID, "displayName": k.Mark, "hint": k.Secret[:3], "secretText": nil})
		}
		reply(w, http.StatusOK, map[string]any{"passwordCredentials": list})
	case call == "/addPassword":
		key := Key{ID: strings.ToLower(rand.Text()), Secret: rand.Text() + "~.", Mark: in.Password.DisplayName}
		a.Ends.Store(&in.Password.End)
		if !a.add(&key) {
			reply(w, http.StatusBadRequest, graph("Directory_QuotaExceeded"))
			return
		}
		reply(w, http.StatusOK, map[string]any{"keyId": key.ID, "displayName": key.Mark, "secretText": key.Secret})
	case call == "/removePassword" && a.Remove(in.KeyID):
		reply(w, http.StatusNoContent, nil)
	default:
		reply(w, http.StatusBadRequest, graph("Request_BadRequest"))
	}
}

// graphAPI is the API that accepts the tokens of Azure.
const graphAPI = "https://graph.microsoft.com"

func (a *Azure) login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != graphAPI+"/.default" {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_request", "error_codes": []int{900144}})
		return
	}
	id, secretText := r.FormValue("client_id"), r.FormValue("client_secret")
	good := id == a.Admin.ID && secretText == a.Admin.Secret ||
		r.FormValue("client_assertion") == "federated" && r.FormValue("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	for _, k := range a.seen() {
		good = good || id == a.Application && k.Secret == secretText && a.use(k.ID, func(Key) bool { return true })
	}
	if id != a.Admin.ID && id != a.Application {
		reply(w, http.StatusBadRequest, map[string]any{"error": "unauthorized_client", "error_codes": []int{700016}})
		return
	}
	if !good {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_codes": []int{7000215}})
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": *a.Token.Load(), "expires_in": 3599})
}

// SignIn logs in with a client secret, as an application does.
func (a *Azure) SignIn(secretText string) error {
	return post(a.URL+"/"+a.Tenant+"/oauth2/v2.0/token", url.Values{
		"grant_type": {"client_credentials"}, "scope": {graphAPI + "/.default"}, "client_id": {a.Application}, "client_secret": {secretText},
	})
}
