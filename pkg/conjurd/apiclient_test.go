package conjurd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cyberark/conjur-api-go/conjurapi"
	"github.com/cyberark/conjur-api-go/conjurapi/authn"
	"github.com/cyberark/conjur-api-go/conjurapi/logging"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// These tests show that the official client gets along with the server.

const clientPolicy = `
- !policy
  id: app
  body:
  - !variable { id: a, annotations: { description: hello } }
  - !variable b
  - !variable bin
  - !variable empty
  - !variable hidden
  - !variable "uni/ñ o"
  - !host web
  - !user alice
  - !group readers
  - !grant { role: !group readers, member: !host web }
  - !permit { role: !group readers, privileges: [read, execute], resources: [ !variable a, !variable b, !variable bin, !variable empty ] }
`

func apiClient(t *testing.T, s *conjurdtest.Server, login, key string) *conjurapi.Client {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // where the client would look for other settings
	logging.ApiLog.SetOutput(io.Discard)
	c, err := conjurapi.NewClientFromKey(conjurapi.Config{
		ApplianceURL: s.URL, Account: s.Account, SSLCert: string(s.CA), CredentialStorage: conjurapi.CredentialStorageNone,
	}, authn.LoginPair{Login: login, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	c.SetHttpClient(&http.Client{Transport: buffering{s.Client().Transport}})
	return c
}

// buffering reads answers to their end, since the client leaves some unread
// and then their connections never end.
type buffering struct{ next http.RoundTripper }

func (b buffering) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

func startClient(t *testing.T) (*conjurdtest.Server, *conjurapi.Client) {
	t.Helper()
	s := conjurdtest.Start(t)
	admin := apiClient(t, s, "admin", s.AdminKey)
	res, err := admin.LoadPolicy(conjurapi.PolicyModePost, "root", strings.NewReader(clientPolicy))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.CreatedRoles) != 2 || res.CreatedRoles["dev:host:app/web"].APIKey != s.HostKey("app/web") || res.Version != 1 {
		t.Errorf("loaded %+v", res)
	}
	for id, value := range map[string]string{"app/a": "A", "app/b": "B", "app/bin": "\xff\x00", "app/hidden": "H", "app/uni/ñ o": "U"} {
		if err := admin.AddSecret(id, value); err != nil {
			t.Errorf("setting %s: %v", id, err)
		}
	}
	return s, admin
}

func TestClientSecrets(t *testing.T) {
	s, admin := startClient(t)
	web := apiClient(t, s, "host/app/web", s.HostKey("app/web"))
	for id, want := range map[string]string{"app/a": "A", "app/bin": "\xff\x00"} {
		if got, err := web.RetrieveSecret(id); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", id, got, err)
		}
	}
	if got, err := admin.RetrieveSecret("app/uni/ñ o"); err != nil || string(got) != "U" {
		t.Errorf("an odd id: %q, %v", got, err)
	}
	if err := admin.AddSecret("app/a", "A2"); err != nil {
		t.Error(err)
	}
	if got, err := web.RetrieveSecretWithVersion("app/a", 1); err != nil || string(got) != "A" {
		t.Errorf("version 1 is %q, %v", got, err)
	}
	batch, err := web.RetrieveBatchSecrets([]string{"app/a", "app/b", "app/b"})
	if err != nil || len(batch) != 2 || string(batch["dev:variable:app/a"]) != "A2" {
		t.Errorf("batch %q, %v", batch, err)
	}
	batch, err = web.RetrieveBatchSecretsSafe([]string{"app/a", "app/bin"})
	if err != nil || len(batch) != 2 || string(batch["dev:variable:app/bin"]) != "\xff\x00" {
		t.Errorf("safe batch %q, %v", batch, err)
	}
	for _, c := range []struct {
		ids  []string
		want string
	}{
		{[]string{"app/a", "app/bin"}, "406 Not Acceptable. CONJ00074E"},
		{[]string{"app/empty"}, "404 Not Found. CONJ00076E Variable dev:variable:app/empty is empty or not found.."},
		{[]string{"app/hidden", "app/nope"}, "404 Not Found. CONJ00076E Variable dev:variable:app/nope is empty or not found.."},
	} {
		if _, err := web.RetrieveBatchSecrets(c.ids); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("batch %v: %v", c.ids, err)
		}
	}
	if _, err := web.RetrieveSecret("app/hidden"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("hidden: %v", err)
	}
	if err := web.AddSecret("app/a", "x"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("setting without a right: %v", err)
	}
	if _, err := web.V2().BatchRetrieveSecrets([]string{"app/a"}); err == nil {
		t.Error("the newer batch is offered by a client for SaaS only")
	}
}

func TestClientResourcesAndRoles(t *testing.T) {
	s, admin := startClient(t)
	web := apiClient(t, s, "host/app/web", s.HostKey("app/web"))
	for id, want := range map[string]bool{"dev:variable:app/a": true, "dev:variable:app/hidden": false, "dev:variable:app/nope": false} {
		if got, err := web.CheckPermission(id, "execute"); err != nil || got != want {
			t.Errorf("execute on %s: %t, %v", id, got, err)
		}
	}
	if got, err := admin.CheckPermissionForRole("dev:variable:app/a", "dev:host:app/web", "execute"); err != nil || !got {
		t.Errorf("for the host: %t, %v", got, err)
	}
	ids, err := web.ResourceIDs(&conjurapi.ResourceFilter{Kind: "variable"})
	if want := []string{"dev:variable:app/a", "dev:variable:app/b", "dev:variable:app/bin", "dev:variable:app/empty"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("the host sees %v, %v", ids, err)
	}
	ids, err = admin.ResourceIDs(&conjurapi.ResourceFilter{Kind: "variable", Search: "hello"})
	if err != nil || !slices.Equal(ids, []string{"dev:variable:app/a"}) {
		t.Errorf("a search finds %v, %v", ids, err)
	}
	count, err := admin.ResourcesCount(&conjurapi.ResourceFilter{Kind: "variable", Limit: 100})
	if err != nil || fmt.Sprint(count.Count) != "6" {
		t.Errorf("count %+v, %v", count, err)
	}
	res, err := admin.Resource("dev:variable:app/a")
	if err != nil || res["owner"] != "dev:policy:app" {
		t.Errorf("resource %v, %v", res, err)
	}
	if yes, err := admin.ResourceExists("dev:variable:app/nope"); err != nil || yes {
		t.Errorf("a missing resource exists: %t, %v", yes, err)
	}
	roles, err := admin.PermittedRoles("dev:variable:app/a", "execute")
	slices.Sort(roles)
	if want := []string{"dev:group:app/readers", "dev:host:app/web", "dev:policy:app", "dev:user:admin"}; err != nil || !slices.Equal(roles, want) {
		t.Errorf("permitted are %v, %v", roles, err)
	}
	if yes, err := admin.RoleExists("dev:host:app/web"); err != nil || !yes {
		t.Errorf("the host exists: %t, %v", yes, err)
	}
	members, err := admin.RoleMembers("dev:group:app/readers")
	if err != nil || len(members) != 2 {
		t.Errorf("members %v, %v", members, err)
	}
	memberships, err := admin.RoleMembershipsAll("dev:host:app/web")
	if err != nil || !slices.Equal(memberships, []string{"dev:group:app/readers", "dev:host:app/web"}) {
		t.Errorf("memberships %v, %v", memberships, err)
	}
}

func TestClientPolicies(t *testing.T) {
	_, admin := startClient(t)
	dry, err := admin.DryRunPolicy(conjurapi.PolicyModePatch, "app", strings.NewReader("- !variable new\n- !delete { record: !variable b }\n"))
	if err != nil || dry.Status != "Valid YAML" || len(dry.Created.Items) != 1 || len(dry.Deleted.Items) != 1 {
		t.Errorf("dry run %+v, %v", dry, err)
	}
	dry, err = admin.DryRunPolicy(conjurapi.PolicyModePost, "app", strings.NewReader("- !nosuch x\n"))
	if err != nil || dry.Status != "Invalid YAML" || len(dry.Errors) != 1 || dry.Errors[0].Line != 1 {
		t.Errorf("dry run of a bad policy %+v, %v", dry, err)
	}
	if _, err := admin.LoadPolicy(conjurapi.PolicyModePost, "app", strings.NewReader("- !nosuch x\n")); err == nil ||
		!strings.Contains(err.Error(), "Error at line 1, column 0 in policy : Unrecognized data type '!nosuch'") {
		t.Errorf("a bad policy: %v", err)
	}
	text, err := admin.FetchPolicy("app", false, 64, 100000)
	if err != nil || !strings.HasPrefix(string(text), "---\n- !policy\n  id: app\n") {
		t.Fatalf("policy %s, %v", text, err)
	}
	// What is shown loads, and then is shown the same.
	for range 2 {
		if _, err := admin.LoadPolicy(conjurapi.PolicyModePut, "root", strings.NewReader(string(text))); err != nil {
			t.Fatal(err)
		}
		again, err := admin.FetchPolicy("app", false, 64, 100000)
		if err != nil || string(again) != string(text) {
			t.Errorf("loaded and shown again:\n%s\ninstead of\n%s\n%v", again, text, err)
		}
	}
	if got, err := admin.RetrieveSecret("app/a"); err != nil || string(got) != "A" {
		t.Errorf("a value after that: %q, %v", got, err)
	}
	if asJSON, err := admin.FetchPolicy("app", true, 64, 100000); err != nil || !strings.HasPrefix(string(asJSON), `[{"policy":{"id":"app","body":[{"user":{"id":"alice"}},{"variable":{"id":"a",`) {
		t.Errorf("as JSON %s, %v", asJSON, err)
	}
}

func TestClientCredentials(t *testing.T) {
	s, admin := startClient(t)
	if who, err := admin.WhoAmI(); err != nil || !strings.Contains(string(who), `"username":"admin"`) {
		t.Errorf("whoami %s, %v", who, err)
	}
	if version, err := admin.ServerVersion(); err != nil || !strings.HasPrefix(version, "1.24.0") {
		t.Errorf("version %q, %v", version, err)
	}
	if version, err := admin.ServerVersionFromRoot(); err != nil || !strings.HasPrefix(version, "1.24.0") {
		t.Errorf("version %q, %v", version, err)
	}
	old := s.HostKey("app/web")
	key, err := admin.RotateHostAPIKey("dev:host:app/web")
	if err != nil || string(key) == old || string(key) != s.HostKey("app/web") {
		t.Errorf("rotating: %v", err)
	}
	if _, err := apiClient(t, s, "host/app/web", old).RetrieveSecret("app/a"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with the old key: %v", err)
	}
	const password = "SuperSecret12!!"
	alice := apiClient(t, s, "alice@app", "unused")
	key, err = admin.RotateUserAPIKey("dev:user:alice@app")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.ChangeUserPassword("alice@app", string(key), "short"); err == nil || !strings.Contains(err.Error(), "CONJ00046E") {
		t.Errorf("a weak password: %v", err)
	}
	if _, err := alice.ChangeUserPassword("alice@app", string(key), password); err != nil {
		t.Errorf("a password: %v", err)
	}
	if got, err := alice.Login("alice@app", password); err != nil || string(got) != string(key) {
		t.Errorf("login: %v", err)
	}
	if _, err := alice.Login("alice@app", "wrong"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("login with a wrong password: %v", err)
	}
}
