package clouds

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// before is what happens to each request while it is set.
func before(now *atomic.Pointer[http.HandlerFunc]) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if instead := now.Load(); instead != nil {
				(*instead)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// TestACloudThatDoesNot do what Syncer asks: each gives one sentence that says what to do.
func TestACloudThatDoesNot(t *testing.T) {
	for name, c := range map[string]struct{ service, call, denied, refusal string }{
		"aws":   {"AWS IAM", "ListAccessKeys", "ListAccessKeys", "403 AccessDenied"},
		"gcp":   {"Google Cloud IAM", "keys.list", "GET ", "403 PERMISSION_DENIED"},
		"azure": {"Microsoft Graph", "applications.get", "", "403 Authorization_RequestDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			var now atomic.Pointer[http.HandlerFunc]
			d := doubles[name](t, before(&now))
			keys := d.keys(brisk(s.reader))
			says := func(ctx context.Context, want string) {
				t.Helper()
				if _, err := keys.Prepare(ctx, versions.New("us")); err == nil || err.Error() != want {
					t.Errorf("said %v, want %s", err, want)
				}
			}
			if _, err := keys.Prepare(t.Context(), versions.New("us")); err != nil { // it now has a token
				t.Fatal(err)
			}
			d.Deny(c.denied, true)
			says(t.Context(), c.service+" refuses "+c.call+" ("+c.refusal+`); permit this call, as "syncer rotate init" prints it`)
			d.Deny(c.denied, false)

			closes := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			now.Store(&closes)
			says(t.Context(), c.service+" did not answer "+c.call+" (the connection was closed, or the answer is not HTTP); Syncer tries again")
			silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body(r); <-r.Context().Done() })
			now.Store(&silent)
			soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			says(soon, c.service+" did not answer "+c.call+" (the timeout has passed); Syncer tries again")
			now.Store(nil)

			d.Throttle(1)
			says(t.Context(), c.service+" limits the rate of requests and did not accept "+c.call+"; Syncer waits 1s and tries again")
		})
	}
}

// TestMistakesOfAnOperator give one sentence each, without the text of the answer.
func TestMistakesOfAnOperator(t *testing.T) {
	s := newSite(t)
	const nowhere = "http://127.0.0.1:1"
	aws := func(change func(*AWS, *cloud.AWS)) *cloud.Keys {
		a := NewAWS(t, "shop", nil)
		own := cloud.AWS{User: "shop", Endpoint: a.URL, Client: client, Admin: value(a.AdminJSON())}
		change(a, &own)
		return cloud.NewAWS(brisk(s.reader), own)
	}
	azure := func(change func(*Azure, *cloud.Azure)) *cloud.Keys {
		a := NewAzure(t, nil)
		own := cloud.Azure{Application: a.Application, Tenant: a.Tenant, Endpoint: a.URL, Client: client}
		change(a, &own)
		return cloud.NewAzure(brisk(s.reader), own)
	}
	admin := func(text string) func(*Azure, *cloud.Azure) {
		return func(_ *Azure, own *cloud.Azure) { own.Admin = value(text) }
	}
	off := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusForbidden, map[string]any{"error": map[string]any{"code": 403, "status": "PERMISSION_DENIED", "details": []any{map[string]string{"reason": "SERVICE_DISABLED"}}}})
	})
	for want, keys := range map[string]*cloud.Keys{
		"AWS IAM does not find what ListAccessKeys names (404 NoSuchEntity); correct the name in the set":                                        aws(func(_ *AWS, own *cloud.AWS) { own.User = "nobody" }),
		"AWS IAM did not answer ListAccessKeys (dial tcp 127.0.0.1:1: connect: connection refused); Syncer tries again":                          aws(func(_ *AWS, own *cloud.AWS) { own.Endpoint = nowhere }),
		`the variable that aws.admin names is not {"accessKeyId":…,"secretAccessKey":…}; set it so`:                                              aws(func(_ *AWS, own *cloud.AWS) { own.Admin = value("{}") }),
		"AWS IAM does not accept the credentials of Syncer (403 InvalidClientTokenId); correct them":                                             aws(func(_ *AWS, own *cloud.AWS) { own.Admin = value(`{"accessKeyId":"AKIA","secretAccessKey":"x"}`) }),
		"Microsoft Entra ID does not accept the credentials of Syncer (401 invalid_client); correct them":                                        azure(admin(`{"tenantId":"acme","clientId":"syncer","clientSecret":"wrong"}`)),
		"Microsoft Entra ID does not accept the credentials of Syncer (400 unauthorized_client); correct them":                                   azure(admin(`{"tenantId":"acme","clientId":"other","clientSecret":"x"}`)),
		"Microsoft Entra ID does not accept a request for a token (400 invalid_tenant); correct the names in the set, or the identity of Syncer": azure(admin(`{"tenantId":"other","clientId":"syncer","clientSecret":"x"}`)),
		"Microsoft Graph does not find what applications.get names (404 Request_ResourceNotFound); correct the name in the set":                  azure(func(_ *Azure, own *cloud.Azure) { own.Application = "other" }),
		"Google Cloud IAM is not enabled (403 SERVICE_DISABLED); enable its API in the project of Syncer's identity": func() *cloud.Keys {
			g := NewGCP(t, shop, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.URL.Path, "/v1/") {
						next = off
					}
					next.ServeHTTP(w, r)
				})
			})
			return g.keys(brisk(s.reader))
		}(),
		"Google Cloud's metadata service at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; give the Pod of Syncer an identity in the cloud, or set gcp.admin": cloud.NewGCP(brisk(s.reader), cloud.GCP{Account: shop, Endpoint: nowhere, Client: client}),
		"Azure's metadata service at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; give the Pod of Syncer an identity in the cloud, or set azure.admin":      azure(func(_ *Azure, own *cloud.Azure) { own.Endpoint = nowhere }),
	} {
		if _, err := keys.Prepare(t.Context(), versions.New("us")); err == nil || err.Error() != want {
			t.Errorf("said %v, want %s", err, want)
		}
	}
}

// TestAPolicyThatForbidsKeys is named, because there is room for one.
func TestAPolicyThatForbidsKeys(t *testing.T) {
	s, h := newSite(t), &heard{}
	g := NewGCP(t, shop, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/keys") {
				reply(w, http.StatusBadRequest, google("FAILED_PRECONDITION"))
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	run(t, s.engine(s.reader, g.keys(brisk(s.reader)), nil, h))
	proctest.Eventually(t, "the reason is said", func() bool {
		return strings.Contains(h.all(), "(400 FAILED_PRECONDITION); the service account "+shop+" has room for a key, so let the organization's policy permit one")
	})
}
