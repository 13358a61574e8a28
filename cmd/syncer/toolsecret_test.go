package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// secretValues are variables with values of every kind.
const secretValues = `{"p/a": "va", "p/b": "vb", "p/enc": "ZGVjb2RlZA==", "p/empty": "", "p/bin": {"base64": "8P9Kww=="},
"p/pem": "-----BEGIN-----\nx\n-----END-----\n", "p/with space": "vs", "p/plus+amp&": "vp"}`

// secretManifest is a Secret as JSON; the map is left out when it is empty.
func secretManifest(t *testing.T, annotations, data map[string]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": data,
		"metadata": map[string]any{"name": "s", "annotations": annotations},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the Secrets Provider puts into a Secret, and what it is meant to.
func TestRenderOfASecret(t *testing.T) {
	values := files(t, "values.json", secretValues) + "/values.json"
	group := func(name, secrets string, more ...string) map[string]string {
		annotations := map[string]string{"conjur.org/conjur-secrets." + name: secrets}
		for i := 0; i < len(more); i += 2 {
			annotations["conjur.org/"+more[i]+"."+name] = more[i+1]
		}
		return annotations
	}
	for _, c := range []struct {
		name        string
		annotations map[string]string
		conjurMap   string
		want        map[string]string
	}{
		{"an object", nil, "A:\n  id: p/a", map[string]string{"A": "va"}},
		{"base64", nil, "A:\n  id: p/enc\n  content-type: base64", map[string]string{"A": "decoded"}},
		{"no content type", nil, "A:\n  id: p/enc\n  content-type: ''", map[string]string{"A": "ZGVjb2RlZA=="}},
		{"two keys", nil, "A: p/a\nB: p/a", map[string]string{"A": "va", "B": "va"}},
		{"bytes", nil, "A: p/bin", map[string]string{"A": "\xf0\xff\x4a\xc3"}},
		{"empty", nil, "A: p/empty", map[string]string{"A": ""}},
		{"lines", nil, "A: p/pem", map[string]string{"A": "-----BEGIN-----\nx\n-----END-----\n"}},
		{"a star for one", nil, "'*': p/a", map[string]string{"p.a": "va"}},
		{"all, and foreign keys are kept", nil, "'*': '*'", map[string]string{
			"p.a": "va", "p.b": "vb", "p.bin": "\xf0\xff\x4a\xc3", "p.empty": "", "p.enc": "ZGVjb2RlZA==",
			"p.pem": "-----BEGIN-----\nx\n-----END-----\n", "p.plus.amp.": "vp", "p.with.space": "vs",
		}},
		{"a group", group("cfg", "- u: p/a", "secret-file-template", `u={{ secret "u" }}`), "B: p/b", map[string]string{"B": "vb", "cfg": "u=va"}},
		{"a group in a format", group("cfg", "- u: a\n- e: enc\n  content-type: base64", "secret-file-format", "json", "conjur-secrets-policy-path", "p"), "",
			map[string]string{"cfg": `{"u":"va","e":"decoded"}`}},
		{"all in a group", group("cfg", "*", "secret-file-template", `{{range .SecretsArray}}{{.Alias}};{{end}}`), "",
			map[string]string{"cfg": "p/a;p/b;p/bin;p/empty;p/enc;p/pem;p/plus+amp&;p/with space;"}},
	} {
		data, want := map[string]string{"mine": "keep"}, map[string]string{"mine": "keep"}
		maps.Copy(want, c.want)
		if c.conjurMap != "" {
			data["conjur-map"], want["conjur-map"] = c.conjurMap, c.conjurMap
		}
		out, errs, status := runTool(t, secretManifest(t, c.annotations, data), "render", "-f", "-", "--values", values)
		var got struct {
			Kind, Type string
			Data       map[string][]byte
			StringData map[string]string
		}
		if err := yaml.Unmarshal([]byte(out), &got); err != nil || status != 0 || errs != "" {
			t.Errorf("%s: %v, status %d, %s", c.name, err, status, errs)
			continue
		}
		texts := map[string]string{}
		for key, value := range got.Data {
			texts[key] = string(value)
		}
		if !reflect.DeepEqual(texts, want) || got.Kind != "Secret" || got.Type != "Opaque" || got.StringData != nil {
			t.Errorf("%s: %q and %+v; want %q", c.name, texts, got, want)
		}
	}
}

// A template in a ConfigMap is taken from the manifest, or else from a folder.
func TestRenderOfASecretWithATemplateInAConfigMap(t *testing.T) {
	dir := files(t, "values.json", secretValues, "templates/cm/key", `folder={{ secret "u" }}`)
	secret := secretManifest(t, map[string]string{
		"conjur.org/conjur-secrets.cfg": "- u: p/a", "conjur.org/secret-file-template-configmap.cfg": "cm/key",
	}, nil)
	const configMap = `{kind: ConfigMap, metadata: {name: cm}, data: {key: 'u={{ secret "u" }}'}}`
	for _, c := range []struct {
		text   string
		args   []string
		want   string // the value, or a part of the error
		status int
	}{
		{secret + "\n---\n" + configMap, nil, "u=va", 0},
		{secret, []string{"--templates-dir", dir + "/templates"}, "folder=va", 0},
		{secret, nil, "the ConfigMap cm is not in the manifest", 1},
		{secret + "\n---\n{kind: ConfigMap, metadata: {name: cm}}", nil, "conjur.org/secret-file-template-configmap.cfg: the ConfigMap cm has no key key", 1},
		{secret + "\n---\n{kind: ConfigMap, metadata: {name: cm}, data: {key: '{{ secret \"no\" }}'}}", nil, "conjur.org/secret-file-template-configmap.cfg: template: cfg:1", 1},
	} {
		out, errs, status := runTool(t, c.text, append([]string{"render", "-f", "-", "--values", dir + "/values.json"}, c.args...)...)
		var got struct{ Data map[string][]byte }
		if err := yaml.Unmarshal([]byte(out), &got); err != nil || status != c.status {
			t.Errorf("%v, status %d: %s%s", err, status, out, errs)
		}
		if text := string(got.Data["cfg"]) + errs; !strings.Contains(text, c.want) || status != 0 && out != "" {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
	// What a manifest does not have is taken to be right.
	if out, errs, status := runTool(t, secret, "validate", "-f", "-"); status != 0 || out+errs != "" {
		t.Errorf("validate: status %d, %s%s", status, out, errs)
	}
}

func TestRenderOfABadSecretPrintsNothing(t *testing.T) {
	values := files(t, "values.json", `{"p/a": "canary"}`) + "/values.json"
	const secret = "kind: Secret\nmetadata: {name: s}\n"
	for name, c := range map[string]struct {
		text string
		args []string
		says []string
	}{
		"no values": {secret + "stringData: {conjur-map: 'A: p/x', B: canary}\n---\n" + secret + "stringData: {conjur-map: 'A: p/y'}", nil, []string{"p/x", "p/y"}},
		"a bad map": {secret + "stringData: {conjur-map: 'A: 5'}", nil, []string{"Secret/s: conjur-map: line 1"}},
		"bad data":  {secret + "stringData: {conjur-map: 'A: p/a', b: [canary]}", nil, []string{"Secret/s: data: line 3", "value of b"}},
		"too large": {secret + "stringData: {conjur-map: 'A: p/a', canary: '" + strings.Repeat("canary", 1<<20/6) + "'}", nil,
			[]string{"Secret/s: data: the values would have 1048", "and Kubernetes allows 1048576"}},
		"immutable":   {secret + "immutable: true\nstringData: {conjur-map: 'A: p/a'}", nil, []string{"Secret/s: immutable: nothing can be put into a Secret"}},
		"no Secret":   {"kind: Service", nil, []string{"there is no Secret"}},
		"input twice": {secret, []string{"--values", "-"}, []string{"cannot both be standard input"}},
		"a value that does not fit": {`{kind: Secret, metadata: {name: s, annotations: {conjur.org/conjur-secrets.g: "- u: p/a",
conjur.org/secret-file-template.g: '{{ secret "u" | b64dec }}'}}}`, nil, []string{"Secret/s: g"}},
	} {
		out, errs, status := runTool(t, c.text, append([]string{"render", "-f", "-", "--values", values}, c.args...)...)
		if out != "" || status != 1 || strings.Contains(errs, "canary") {
			t.Errorf("%s: printed %q and %q with status %d", name, out, errs, status)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q does not tell %q", name, errs, want)
			}
		}
	}
}

func TestValidateOfSecrets(t *testing.T) {
	text := secretManifest(t, map[string]string{
		"conjur.org/conjur-secrets.a":       "- u: p/a",
		"conjur.org/secret-file-template.a": "{{ bad",
		"conjur.org/conjur-secrets.b":       "- u: p/a",
		"conjur.org/secret-file-template.b": `{{ secret "zz" }}`,
		"conjur.org/conjur-secrets.c":       "- u v: p/a",
		"conjur.org/secret-file-format.c":   "bash",
		"conjur.org/conjur-secrets.d":       "",
		"conjur.org/secret-file-template.d": "x",
		"conjur.org/conjur-secrets.e":       "- u: p/a/",
		"conjur.org/secret-file-template.e": `{{ secret "u" }}`,
		"conjur.org/conjur-secrets.skipped": "- u: p/a",
		"conjur.org/conjur-secrets.K":       "- u: p/a",
		"conjur.org/secret-file-format.K":   "yaml",
	}, map[string]string{"conjur-map": "A: true\nK: p/a", "mine": "canary"})
	out, _, status := runTool(t, text+"\n---\n{kind: Secret, metadata: {name: bin}, data: {conjur-map: canary}}", "validate", "-f", "-", "--output", "json")
	var got struct {
		Errors, Warnings []struct{ Key, Message string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || strings.Contains(out, "canary") {
		t.Fatalf("%v, status %d: %s", err, status, out)
	}
	keys := map[string]int{}
	for _, e := range got.Errors {
		keys[e.Key]++
	}
	want := map[string]int{
		"Secret/s: conjur-map": 1, "Secret/s: conjur.org/conjur-secrets.K": 1, "Secret/s: conjur.org/conjur-secrets.d": 1,
		"Secret/s: conjur.org/conjur-secrets.e": 1, "Secret/s: conjur.org/secret-file-template.a": 1,
		"Secret/s: conjur.org/secret-file-template.b": 1, "Secret/s: conjur.org/conjur-secrets.c": 1, "Secret/bin: conjur-map": 1,
	}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("errors are about %v, want %v", keys, want)
	}
	if len(got.Warnings) != 1 || got.Warnings[0].Key != "Secret/s: conjur.org/conjur-secrets.skipped" {
		t.Errorf("warnings are %v", got.Warnings)
	}
}

// TestValidateOfASecretWithoutAMap wants of a Secret that only its name can
// choose that it says what it is to hold; one with the label may say it later.
func TestValidateOfASecretWithoutAMap(t *testing.T) {
	const empty, none = "Secret/s: conjur-map: the map is empty", "Secret/s: conjur-map: there is neither a map nor a group"
	group := map[string]string{"conjur.org/conjur-secrets.g": "- u: p/a"}
	for _, c := range []struct {
		annotations map[string]string
		conjurMap   string
		want        string
	}{
		{nil, "A: p/a", ""},
		{nil, "{}", empty},
		{nil, "# nothing", empty},
		{group, "", none}, // it has no template
	} {
		data := map[string]string{}
		if c.conjurMap != "" {
			data["conjur-map"] = c.conjurMap
		}
		named := secretManifest(t, c.annotations, data)
		labelled := strings.Replace(named, `"name":`, `"labels":{"conjur.org/managed-by-provider":"true"},"name":`, 1)
		for text, says := range map[string]string{named: "error: " + c.want, labelled: "warning: " + c.want} {
			out, errs, status := runTool(t, text, "validate", "-f", "-")
			wrong := c.want != "" && text == named
			if out != "" || (status == 1) != wrong || c.want != "" && !strings.Contains(errs, says) || c.want == "" && errs != "" {
				t.Errorf("%s: printed %q and %q with status %d, want %q", text, out, errs, status, says)
			}
		}
	}
}

// TestValidateOfASecretThatAWorkloadNames wants a map of each Secret that the
// annotations list, whatever its label; other Secrets are of no concern.
func TestValidateOfASecretThatAWorkloadNames(t *testing.T) {
	const secrets = `---
kind: Secret
metadata: {name: listed, labels: {conjur.org/managed-by-provider: "true"}}
---
kind: Secret
metadata: {name: foreign}
`
	text := podWith("secrets-destination: file", "secrets-destination: k8s_secrets\n        conjur.org/k8s-secrets: '- listed'")
	v, status := validateJSON(t, text+secrets)
	if status != 1 || !only(v.Errors, []string{"Secret/listed: conjur-map", "neither a map nor a group"}) {
		t.Errorf("status %d, errors %q", status, v.Errors)
	}
}

func TestValidateOfUnknownAnnotationsOfASecret(t *testing.T) {
	text := secretManifest(t, map[string]string{
		"conjur.org/managed-by-provider":        "true",
		"conjur.org/restart-workloads":          "deployment/shop",
		"conjur.org/secret-file-tempalte.g":     "x",
		"conjur.org/secret-revision":            "7",
		"conjur.org/secret-variables":           "x",
		"example.com/secret-file-template.none": "x",
	}, map[string]string{"conjur-map": "A: p/a"})
	out, errs, status := runTool(t, text, "validate", "-f", "-")
	const want = `warning: Secret/s: conjur.org/managed-by-provider: not an annotation but a label; ignored
warning: Secret/s: conjur.org/secret-file-tempalte.g: not an annotation of a Secret; ignored
`
	if out != "" || errs != want || status != 0 {
		t.Errorf("status %d, %q and\n%s", status, out, errs)
	}
}
