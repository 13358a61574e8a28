package kubesecrets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A fault names the key that is to blame.
func TestContentFaultNamesTheKey(t *testing.T) {
	const broken = "-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n"
	cases := []struct {
		kind corev1.SecretType
		data map[string]string
		want string
	}{
		{corev1.SecretTypeTLS, map[string]string{}, `"tls.crt", "tls.key"`},
		{corev1.SecretTypeTLS, map[string]string{"tls.crt": broken}, `needs a value under "tls.key"`},
		{corev1.SecretTypeTLS, map[string]string{"tls.crt": "canary", "tls.key": "canary"}, `"tls.crt" is not a PEM certificate`},
		{corev1.SecretTypeTLS, map[string]string{"tls.crt": broken, "tls.key": "canary"}, `"tls.crt" is not a PEM certificate`},
		{corev1.SecretTypeTLS, map[string]string{"tls.crt": strings.ReplaceAll(broken, "\n", `\n`), "tls.key": "canary"}, `"tls.crt" has \n as two letters`},
		{corev1.SecretTypeTLS, map[string]string{"tls.crt": "canary", "tls.key": `-----BEGIN PRIVATE KEY-----\ncanary`}, `"tls.key" has \n as two letters`},
		{corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": "canary"}, `".dockerconfigjson" is not a JSON object with "auths"`},
		{corev1.SecretTypeDockercfg, map[string]string{".dockercfg": "canary"}, `".dockercfg" is not a JSON object of registries`},
		{corev1.SecretTypeBasicAuth, map[string]string{"user": "canary"}, `one of the keys "password", "username"`},
		{corev1.SecretTypeSSHAuth, map[string]string{"ssh-privatekey": " \n"}, `"ssh-privatekey" is empty`},
		{corev1.SecretTypeOpaque, map[string]string{"tls.crt": "canary"}, ""},
		{"example.org/own", nil, ""},
	}
	for _, c := range cases {
		data := map[string][]byte{}
		for key, value := range c.data {
			data[key] = []byte(value)
		}
		got := contentFault(c.kind, data)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "canary") {
			t.Errorf("of %s with %q the fault is %q, want %q in it", c.kind, c.data, got, c.want)
		}
	}
}
