package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

// logins are, by authenticator, what its setting up takes.
func logins(t *testing.T) map[config.AuthnType]dict {
	t.Helper()
	cert, key := keyPair(t, time.Now().Add(time.Hour))
	base := dict{"CONJUR_APPLIANCE_URL": "https://c", "CONJUR_ACCOUNT": "a", "CONJUR_AUTHN_LOGIN": "host/app"}
	pod := dict{"MY_POD_NAME": "web-0", "MY_POD_NAMESPACE": "shop", "CONJUR_CLIENT_CERT_PATH": t.TempDir() + "/client.pem"}
	return map[config.AuthnType]dict{
		config.AuthnAPIKey: base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn", "CONJUR_AUTHN_API_KEY": "k"}),
		config.AuthnJWT:    base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-jwt/x", "JWT_TOKEN_PATH": t.TempDir() + "/token"}),
		config.AuthnK8s:    base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-k8s/x"}).with(pod),
		config.AuthnIAM:    base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-iam/x"}),
		config.AuthnAzure:  base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-azure/x"}),
		config.AuthnGCP:    base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-gcp"}),
		config.AuthnCert:   base.with(dict{"CONJUR_AUTHN_URL": "https://c/authn-cert/x", "CONJUR_AUTHN_CERT_FILE": cert, "CONJUR_AUTHN_CERT_KEY_FILE": key}),
	}
}

// Every setting of the connection counts with every authenticator.
func TestEveryAuthenticatorTakesEverySetting(t *testing.T) {
	ca := writeFile(t, "ca.pem", certificate(t))
	for name, env := range logins(t) {
		t.Run(string(name), func(t *testing.T) {
			env = env.with(dict{"CONJUR_CERT_FILE": ca, "CONJUR_HTTP_TIMEOUT": "7", "CONJUR_TOKEN_TIMEOUT": "3m", "CONJUR_AUTHN_LOGIN": ""})
			annotations := group.with(dict{"authn-identity": "host/annotated"})
			cfg, warnings := load(t, sources(t, annotations, env))
			c := cfg.Conjur
			if c.AuthnType != name || c.Login != "host/annotated" || c.CertFile != ca || c.HTTPTimeout != 7*time.Second || c.TokenTimeout != 3*time.Minute {
				t.Errorf("got %+v", c)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings %q", warnings)
			}
			cfg, _ = load(t, sources(t, annotations, env.with(dict{"CONJUR_CERT_FILE": ""}))) // the system's
			if cfg.Conjur.CertFile != "" {
				t.Errorf("got %+v", cfg.Conjur)
			}
		})
	}
}

// What is missing is reported all at once, each where it is set.
func TestAuthenticatorsNeed(t *testing.T) {
	for name, want := range map[config.AuthnType]string{
		config.AuthnK8s:   "CONJUR_CLIENT_CERT_PATH MY_POD_NAME MY_POD_NAMESPACE conjur.org/authn-identity",
		config.AuthnIAM:   "conjur.org/authn-identity",
		config.AuthnAzure: "conjur.org/authn-identity",
		config.AuthnGCP:   "conjur.org/authn-identity",
		config.AuthnCert:  "CONJUR_AUTHN_CERT_FILE CONJUR_AUTHN_CERT_KEY_FILE",
	} {
		url := logins(t)[name]["CONJUR_AUTHN_URL"]
		env := dict{"CONJUR_APPLIANCE_URL": "https://c", "CONJUR_ACCOUNT": "a", "CONJUR_AUTHN_URL": url, "CONJUR_CLIENT_CERT_PATH": "/nowhere/client.pem"}
		if name != config.AuthnK8s {
			delete(env, "CONJUR_CLIENT_CERT_PATH")
		}
		var keys []string
		for _, p := range problems(t, sources(t, group, env)) {
			keys = append(keys, p.Key)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestAuthenticatorsRefuse(t *testing.T) {
	all := logins(t)
	_, otherKey := keyPair(t, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		of        config.AuthnType
		env       dict
		key, want string
	}{
		"k8s without host/": {config.AuthnK8s, dict{"CONJUR_AUTHN_LOGIN": "app"}, "CONJUR_AUTHN_LOGIN", "begin \"app\" with host/"},
		"k8s with a dot":    {config.AuthnK8s, dict{"CONJUR_AUTHN_LOGIN": "host/app.v2"}, "CONJUR_AUTHN_LOGIN", "without dots"},
		"wait":              {config.AuthnK8s, dict{"CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT": "ten"}, "CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT", "not an integer"},
		"token timeout":     {config.AuthnIAM, dict{"CONJUR_TOKEN_TIMEOUT": "6"}, "CONJUR_TOKEN_TIMEOUT", "not a duration"},
		"metadata":          {config.AuthnGCP, dict{"CONJUR_AUTHN_METADATA_URL": "http://u:canary@h"}, "CONJUR_AUTHN_METADATA_URL", "not the address"},
		"key of another":    {config.AuthnCert, dict{"CONJUR_AUTHN_CERT_KEY_FILE": otherKey}, "CONJUR_AUTHN_CERT_KEY_FILE", "cannot be used"},
		"no certificate":    {config.AuthnCert, dict{"CONJUR_AUTHN_CERT_FILE": "/nowhere/c"}, "CONJUR_AUTHN_CERT_KEY_FILE", "/nowhere/c"},
	} {
		t.Run(name, func(t *testing.T) {
			assertOne(t, problems(t, sources(t, group, all[c.of].with(c.env))), c.key, c.want)
		})
	}
}

// A credential that nobody uses is pointed out; one that an identity uses is not.
func TestIdleCredentialsAreWarnedOf(t *testing.T) {
	_, warnings := load(t, sources(t, group, logins(t)[config.AuthnIAM].with(dict{"CONJUR_AUTHN_AZURE_CLIENT_ID": "x"})))
	assertOne(t, warnings, "CONJUR_AUTHN_AZURE_CLIENT_ID", "not used by the authenticator authn-iam")
	cfg, warnings := load(t, fileSources(t, "identities: [{name: x, namespaces: [a], conjur: {login: x, authnUrl: 'https://c/authn-azure/x'}}]",
		standalone, inCluster.with(dict{"CONJUR_AUTHN_AZURE_CLIENT_ID": "x"})))
	if len(warnings) > 0 || cfg.Identities[1].Conjur.AzureClientID != "x" {
		t.Errorf("got %+v, %q", cfg.Identities, warnings)
	}
	_, warnings = load(t, fileSources(t, "identities: [{name: x, namespaces: [a], conjur: {login: x, authnUrl: 'https://c/authn-azure/x'}}, {name: y, namespaces: [b], conjur: {login: y, authnUrl: 'https://c/authn-azure/y'}}]",
		standalone, inCluster.with(dict{"CONJUR_AUTHN_CERT_FILE": "/c", "CONJUR_AUTHN_CERT_KEY_FILE": "/k"})))
	if len(warnings) != 2 || warnings[0].Message != warnings[1].Message || strings.Count(warnings[1].Message, "authn-azure") != 1 {
		t.Errorf("got %q, want the authenticators in use in both", warnings)
	}
}

// The identities of a standalone log in each in its own way.
func TestIdentitiesOfAllTypes(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString("identities:\n")
	all := logins(t)
	var namespaces []string
	for i, name := range slices.Sorted(maps.Keys(all)) {
		env, namespace := all[name], string(rune('a'+i))
		namespaces = append(namespaces, namespace)
		yaml.WriteString("- {name: " + string(name) + ", namespaces: [" + namespace + "], conjur: {login: host/own, authnUrl: '" + env["CONJUR_AUTHN_URL"] + "'")
		switch name {
		case config.AuthnAPIKey:
			yaml.WriteString(", apiKeyFile: '" + writeFile(t, "key", "k") + "'")
		case config.AuthnJWT:
			yaml.WriteString(", jwtTokenPath: '" + env["JWT_TOKEN_PATH"] + "'")
		case config.AuthnAzure:
			yaml.WriteString(", azureClientId: mine")
		case config.AuthnCert:
			yaml.WriteString(", clientCertFile: '" + env["CONJUR_AUTHN_CERT_FILE"] + "', clientKeyFile: '" + env["CONJUR_AUTHN_CERT_KEY_FILE"] + "'")
		}
		yaml.WriteString("}}\n")
	}
	pod := dict{"MY_POD_NAME": "p", "MY_POD_NAMESPACE": "n", "CONJUR_CLIENT_CERT_PATH": t.TempDir() + "/client.pem", "NAMESPACE_ALLOWLIST": strings.Join(namespaces, ",")}
	cfg, warnings := load(t, fileSources(t, yaml.String(), dict{"container-mode": "standalone", "secrets-destination": "k8s_secrets"},
		dict{"CONJUR_APPLIANCE_URL": "https://c", "CONJUR_ACCOUNT": "a"}.with(pod)))
	if len(warnings) > 0 || len(cfg.Identities) != len(all) {
		t.Fatalf("got %+v, %q", cfg.Identities, warnings)
	}
	for _, id := range cfg.Identities {
		c := id.Conjur
		if string(c.AuthnType) != id.Name || c.Login != "host/own" || c.PodName != "p" || c.PodNamespace != "n" {
			t.Errorf("%s: got %+v", id.Name, c)
		}
	}
}
