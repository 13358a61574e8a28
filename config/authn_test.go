package config

import (
	"strings"
	"testing"
)

func TestParseAuthnURL(t *testing.T) {
	for _, c := range []struct {
		url     string
		typ     AuthnType
		service string
	}{
		{"https://c/authn", AuthnAPIKey, ""},
		{"https://c/authn-jwt/x", AuthnJWT, "x"},
		{"https://c/authn-jwt/a/b", AuthnJWT, "a/b"},
		{"https://c/authn-k8s/some", "authn-k8s", "some"},
		{"https://c/authn-gcp", "authn-gcp", ""},
		{"https://edge.example.com/api/authn-iam/my-service", "authn-iam", "my-service"},
		{"https://proxy.example.com/custom/path/authn-iam/my-service", "authn-iam", "my-service"},
		{"https://conjur.example.com/authn-iam/my-service/", "authn-iam", "my-service"},
		{"https://conjur.example.com:8443/authn-iam/my-service", "authn-iam", "my-service"},
		{"https://authn-k8s.example/authn-jwt/x", AuthnJWT, "x"},
		{"https://c/authn-proxy/authn-jwt/x", AuthnJWT, "x"},
		{"https://c/authn-jwt/authn-k8s", AuthnJWT, "authn-k8s"},
		{"https://c/authn-later/x", "authn-later", "x"},
	} {
		typ, service, err := parseAuthnURL(c.url)
		if err != nil || typ != c.typ || service != c.service {
			t.Errorf("%s: got %q, %q, %v", c.url, typ, service, err)
		}
	}
	for url, want := range map[string]string{
		"https://conjur.example.com/authn-iam":    "service id is missing after authn-iam",
		"https://conjur.example.com/authn-azure/": "service id is missing after authn-azure",
		"https://authn-jwt.example.com/x":         "no segment",
		"https://c":                               "no segment",
		"https://c/my-authn-jwt/x":                "no segment",
		"https://c/authn-jwt/x?y=z":               "query",
	} {
		if typ, _, err := parseAuthnURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, error %v, want one with %q", url, typ, err, want)
		}
	}
}
