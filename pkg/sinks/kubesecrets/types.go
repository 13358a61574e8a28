package kubesecrets

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/internal/certs"
)

// contentRule lists the requirements of a type of Secret for its data.
type contentRule struct {
	// required keys must all be present, or at least one of them if oneIsEnough.
	required    []string
	oneIsEnough bool
	// blank replaces the value of a required key that should be removed. It is the
	// smallest value that the API server accepts.
	blank string
	// fault describes the fault of data in which all required keys are present
	// and not blank, or returns "". It never shows a part of the data.
	fault func(data map[string][]byte) string
}

// ruleOf returns the requirements of the API server (see its "Types of Secret") and
// of the usual readers for a type. It returns the zero rule for a type without
// requirements.
func ruleOf(kind corev1.SecretType) contentRule {
	sound := func(map[string][]byte) string { return "" }
	switch kind {
	case corev1.SecretTypeTLS:
		return contentRule{required: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, fault: tlsFault}
	case corev1.SecretTypeDockerConfigJson:
		return contentRule{required: []string{corev1.DockerConfigJsonKey}, blank: "{}", fault: dockerConfigJSONFault}
	case corev1.SecretTypeDockercfg:
		return contentRule{required: []string{corev1.DockerConfigKey}, blank: "{}", fault: dockerConfigFault}
	case corev1.SecretTypeBasicAuth:
		return contentRule{required: []string{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey}, oneIsEnough: true, fault: sound}
	case corev1.SecretTypeSSHAuth:
		return contentRule{required: []string{corev1.SSHAuthPrivateKey}, blank: "\n", fault: sshFault}
	}
	return contentRule{fault: sound}
}

// typeFault returns the reason why Secrets of a type are never written, or "".
// Secrets of these types grant permissions in the cluster, or store another
// program's state.
func typeFault(kind corev1.SecretType) string {
	switch kind {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1":
		return "Secrets of type " + string(kind) + " are never written; use one of another type"
	}
	return ""
}

// createFault returns the reason why a Secret of a type is not created, or "".
func createFault(kind corev1.SecretType) string {
	if kind != corev1.SecretTypeOpaque && ruleOf(kind).required == nil {
		return "Secrets of type " + string(kind) + " are not created; create it without data, or use Opaque or one of the types " +
			"kubernetes.io/tls, dockerconfigjson, dockercfg, basic-auth and ssh-auth"
	}
	return ""
}

// blankKeys lists the keys that exist only because the Secret's type requires them.
func blankKeys(kind corev1.SecretType, data map[string][]byte) map[string]bool {
	rule := ruleOf(kind)
	blank := map[string]bool{}
	for _, key := range rule.required {
		value, ok := data[key]
		switch {
		case ok && string(value) == rule.blank:
			blank[key] = true
		case ok && rule.oneIsEnough:
			return nil // next to another value, an empty value is genuine
		}
	}
	return blank
}

// contentFault returns the reason why the data does not fit the type, or "".
func contentFault(kind corev1.SecretType, data map[string][]byte) string {
	rule, blank := ruleOf(kind), blankKeys(kind, data)
	var missing []string
	for _, key := range rule.required {
		if _, ok := data[key]; !ok || blank[key] {
			missing = append(missing, key)
		}
	}
	switch {
	case rule.oneIsEnough && len(missing) == len(rule.required):
		return "a Secret of type " + string(kind) + " needs a value under one of the keys " + quoteList(rule.required)
	case !rule.oneIsEnough && len(missing) > 0:
		return "a Secret of type " + string(kind) + " needs a value under " + quoteList(missing)
	}
	return rule.fault(data)
}

func tlsFault(data map[string][]byte) string {
	certificate, key := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if certs.Escaped(data[name]) {
			return fmt.Sprintf("%q %v", name, certs.ErrEscaped)
		}
	}
	block, rest := pem.Decode(certificate)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return `"tls.crt" is not a PEM certificate`
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return `"tls.crt" is not a PEM certificate`
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return `"tls.key" is not a PEM private key that belongs to the certificate in "tls.crt"`
	}
	return ""
}

func dockerConfigJSONFault(data map[string][]byte) string {
	var config struct{ Auths map[string]struct{} }
	if !decodes(data[corev1.DockerConfigJsonKey], &config) || config.Auths == nil {
		return `".dockerconfigjson" is not a JSON object with "auths"`
	}
	return ""
}

func dockerConfigFault(data map[string][]byte) string {
	var auths map[string]struct{}
	if !decodes(data[corev1.DockerConfigKey], &auths) || auths == nil {
		return `".dockercfg" is not a JSON object of registries`
	}
	return ""
}

func sshFault(data map[string][]byte) string {
	if len(bytes.TrimSpace(data[corev1.SSHAuthPrivateKey])) == 0 {
		return `"ssh-privatekey" is empty`
	}
	return ""
}

// decodes decodes JSON into v as far as v has fields. An empty struct accepts any
// object and stores nothing.
func decodes(text []byte, v any) bool {
	return json.NewDecoder(bytes.NewReader(text)).Decode(v) == nil && json.Valid(text)
}

func quoteList(names []string) string {
	var text []byte
	for i, name := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(append(append(text, '"'), name...), '"')
	}
	return string(text)
}
