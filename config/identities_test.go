package config_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
)

// several is a file for a Deployment whose namespaces have identities of their
// own.
const several = `
containerMode: standalone
secretsDestination: k8s_secrets
kubernetes: {namespace: ns, namespaces: [a, b, c]}
identities:
- name: keyed
  namespaces: [a]
  conjur: {login: host/keyed, apiKeyFile: KEY}
- name: token
  namespaces: [b]
  secrets: [a/special]
  conjur: {authnUrl: "https://other.example.com/authn-jwt/x/", jwtTokenPath: TOKEN, account: acct2}
`

// severalSources has the files that it names.
func severalSources(t *testing.T, yaml string, env dict) config.Sources {
	t.Helper()
	key := writeFile(t, "key", "the-key-is-a-secret\n")
	return fileSources(t, strings.NewReplacer("KEY", strconv.Quote(key), "TOKEN", strconv.Quote(key+".token")).Replace(yaml), nil, env)
}

func TestIdentities(t *testing.T) {
	cfg, warnings := load(t, severalSources(t, several, connection))
	if len(warnings) > 0 || len(cfg.Identities) != 3 {
		t.Fatalf("got %+v, %v", cfg.Identities, warnings)
	}
	own, keyed, token := cfg.Identities[0].Conjur, cfg.Identities[1].Conjur, cfg.Identities[2].Conjur
	if own.Login != "host/app" || own.APIKey.Len() == 0 || own.AuthnType != config.AuthnAPIKey {
		t.Errorf("the process's own: %+v", own)
	}
	if keyed.Login != "host/keyed" || keyed.APIKey.Len() > 0 || !strings.HasSuffix(keyed.APIKeyFile, "/key") ||
		keyed.AuthnURL != "https://conjur.example.com/authn" || keyed.Account != "acct" || keyed.HTTPTimeout != own.HTTPTimeout {
		t.Errorf("keyed: %+v", keyed)
	}
	if token.AuthnType != config.AuthnJWT || token.AuthnURL != "https://other.example.com/authn-jwt/x" || token.APIKeyFile != "" ||
		!strings.HasSuffix(token.JWTTokenPath, "/key.token") || token.Account != "acct2" || token.Login != "" {
		t.Errorf("token: %+v", token)
	}
	for secret, want := range map[string]string{"a/x": "keyed", "a/special": "token", "b/x": "token", "c/x": "", "c/special": ""} {
		namespace, name, _ := strings.Cut(secret, "/")
		if id, ok := cfg.IdentityOf(namespace, name); !ok || id.Name != want {
			t.Errorf("%s is served as %v", secret, id)
		}
	}
}

func TestIdentitiesOfOneProcess(t *testing.T) {
	cfg, _ := load(t, sources(t, standalone, inCluster))
	if id, ok := cfg.IdentityOf("a", "x"); !ok || len(cfg.Identities) != 1 || id.Name != "" || id.Conjur.Login != "host/app" {
		t.Errorf("got %+v", cfg.Identities)
	}
	// An identity that has no authenticator of its own uses the process's.
	cfg, _ = load(t, fileSources(t, "identities: [{name: x, namespaces: [a], conjur: {login: host/x}}]", standalone, jwt(t).with(dict{"MY_POD_NAMESPACE": "ns"})))
	if c := cfg.Identities[1].Conjur; c.AuthnType != config.AuthnJWT || c.Login != "host/x" || c.JWTTokenPath != cfg.Conjur.JWTTokenPath || c.AuthnURL != cfg.Conjur.AuthnURL {
		t.Errorf("got %+v", c)
	}
	// It has its own API key where the process has a token.
	key := writeFile(t, "key", "k")
	cfg, _ = load(t, fileSources(t, "identities: [{name: x, namespaces: [a], conjur: {login: host/x, apiKeyFile: "+key+"}}]", standalone, jwt(t).with(dict{"MY_POD_NAMESPACE": "ns"})))
	if c := cfg.Identities[1].Conjur; c.AuthnType != config.AuthnAPIKey || c.AuthnURL != "https://conjur.example.com/authn" {
		t.Errorf("got %+v", c)
	}
}

// TestWithoutAnIdentityOfItsOwn serves every namespace as another identity.
func TestWithoutAnIdentityOfItsOwn(t *testing.T) {
	env := dict{"CONJUR_APPLIANCE_URL": "https://c", "CONJUR_ACCOUNT": "acct"}
	whole := strings.Replace(several, "namespaces: [b]", "namespaces: [b, c]", 1)
	cfg, _ := load(t, severalSources(t, whole, env))
	if len(cfg.Identities) != 2 || cfg.Identities[0].Name != "keyed" || cfg.Conjur.AuthnType != "" {
		t.Errorf("got %+v", cfg.Identities)
	}
	if _, ok := cfg.IdentityOf("d", "x"); ok {
		t.Error("a namespace is served that is not listed")
	}
	src := severalSources(t, several, env)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":5: identities", `no identity serves the namespace "c"`)
	src = severalSources(t, strings.Replace(several, "[a, b, c]", "['*']", 1), env)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":5: identities", `no identity serves the namespace "*"`)
	src = severalSources(t, strings.Replace(several, "namespaces: [a, b, c]", "namespaceSelector: team=a", 1), env)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":5: identities", `no identity serves the namespace "*"`)
	src = severalSources(t, strings.Replace(several, "[a, b, c]", "[a, b, c], secrets: [{name: special, namespace: a}, {name: x, namespace: c}]", 1), env)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":5: identities", `no identity serves the Secret "c/x"`)
}

// TestAccountOfAnIdentity takes ids in full of the identity's account.
func TestAccountOfAnIdentity(t *testing.T) {
	list := "[a, b, c], secrets: [{name: special, namespace: a, map: {k: 'acct2:variable:v'}}, {name: x, namespace: b, map: {k: 'acct:variable:v'}}]"
	src := severalSources(t, strings.Replace(several, "[a, b, c]", list, 1), connection)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":4: kubernetes.secrets[1].map.k", `of account "acct", but the account in use is "acct2"`)
}

func TestIdentitiesRefuse(t *testing.T) {
	for name, c := range map[string]struct{ identity, place, want string }{
		"one name, twice":      {"{name: keyed, namespaces: [c]}", ".name", `another identity has the name "keyed"`},
		"serves nothing":       {"{name: x, conjur: {login: l, apiKeyFile: KEY}}", ".name", "serves nothing"},
		"namespace, twice":     {"{name: x, namespaces: [c, a], conjur: {login: l, apiKeyFile: KEY}}", ".namespaces", `"a" is already that of the identity "keyed"`},
		"Secret, twice":        {"{name: x, secrets: [a/special], conjur: {login: l, apiKeyFile: KEY}}", ".secrets", `already that of the identity "token"`},
		"namespace not served": {"{name: x, namespaces: [d], conjur: {login: l, apiKeyFile: KEY}}", ".namespaces", `"d" is not served`},
		"all namespaces":       {"{name: x, namespaces: ['*'], conjur: {login: l, apiKeyFile: KEY}}", ".namespaces", "* is not the name"},
		"no namespace":         {"{name: x, namespaces: [A], conjur: {login: l, apiKeyFile: KEY}}", ".namespaces", `"A" is not a name`},
		"Secret not served":    {"{name: x, secrets: [d/s], conjur: {login: l, apiKeyFile: KEY}}", ".secrets", `"d" is not served`},
		"no place of a Secret": {"{name: x, secrets: [s], conjur: {login: l, apiKeyFile: KEY}}", ".secrets", "write namespace/name"},
		"no login":             {"{name: x, namespaces: [c], conjur: {apiKeyFile: KEY}}", ".name", "no conjur.login"},
		"no key":               {"{name: x, namespaces: [c], conjur: {login: l}}", ".name", "no conjur.apiKeyFile"},
		"no key there":         {"{name: x, namespaces: [c], conjur: {login: l, apiKeyFile: /nowhere/key}}", ".conjur.apiKeyFile", "/nowhere/key"},
		"no token's folder":    {"{name: x, namespaces: [c], conjur: {authnUrl: 'https://c/authn-jwt/x', jwtTokenPath: /nowhere/token}}", ".conjur.jwtTokenPath", "nor its folder"},
		"authenticator":        {"{name: x, namespaces: [c], conjur: {authnUrl: 'https://c/authn-ldap/x'}}", ".conjur.authnUrl", "is not supported; use one of"},
		"no login for iam":     {"{name: x, namespaces: [c], conjur: {authnUrl: 'https://c/authn-iam/x'}}", ".name", "no conjur.login, but the authenticator authn-iam needs it"},
		"authenticator's URL":  {"{name: x, namespaces: [c], conjur: {authnUrl: 'http://c/authn'}}", ".conjur.authnUrl", "clear text"},
	} {
		t.Run(name, func(t *testing.T) {
			src := severalSources(t, several+"- "+c.identity+"\n", connection)
			assertOne(t, problems(t, src), src.ConfigFile.Name+":13: identities[2]"+c.place, c.want)
		})
	}
	src := severalSources(t, strings.Replace(several, "apiKeyFile: KEY", "account: x", 1), dict{"CONJUR_APPLIANCE_URL": "https://c", "CONJUR_ACCOUNT": "acct"})
	if got := problems(t, src); len(got) != 2 || !strings.Contains(got[0].Message, "neither conjur.apiKeyFile nor conjur.authnUrl") {
		t.Errorf("got %q", got)
	}
	src = severalSources(t, strings.Replace(several, "[a, b, c]", "[a, b, c], secrets: [{name: x, namespace: a}]", 1), connection)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":11: identities[1].secrets", "is not listed")
}

func TestIdentityWarnings(t *testing.T) {
	src := severalSources(t, several+"- {name: x, namespaces: [c, c], conjur: {login: l, apiKeyFile: KEY, jwtTokenPath: TOKEN}}\n", connection)
	_, warnings := load(t, src)
	if len(warnings) != 2 || !strings.Contains(warnings[0].Message, "written twice") || !strings.Contains(warnings[1].Message, "not used by the authenticator authn") {
		t.Errorf("got %q", warnings)
	}
}
