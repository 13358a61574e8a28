package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// podManifest is a Deployment whose provider has all of its connection in the
// manifest, with a place ENV for more, and templates in a ConfigMap.
const podManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: templates}
data:
  web.tpl: |
    TEMPLATE
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    metadata:
      annotations:
        conjur.org/secrets-destination: file
        conjur.org/conjur-secrets.web: "- token: web/token"
        conjur.org/secret-file-format.web: template
    spec:
      containers:
      - name: app
        image: example/shop:1
      - name: provider
        image: cyberark/secrets-provider-for-k8s:1.9.0
        env:
        - {name: CONJUR_APPLIANCE_URL, value: "https://conjur.example.com"}
        - {name: CONJUR_AUTHN_URL, value: "https://conjur.example.com/authn-jwt/dev"}
        - {name: CONJUR_ACCOUNT, valueFrom: {configMapKeyRef: {name: elsewhere, key: account}}}
        - {name: CONJUR_CERT_FILE, value: /nowhere/in/the/pod/ca.pem}
        - {name: JWT_TOKEN_PATH, value: /nowhere/in/the/pod/token}
        - {name: MY_POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        volumeMounts:
        - {name: podinfo, mountPath: /conjur/podinfo}
        - {name: secrets, mountPath: /conjur/secrets}
        - {name: templates, mountPath: /conjur/templates}
      volumes:
      - {name: podinfo, downwardAPI: {items: [{path: annotations, fieldRef: {fieldPath: metadata.annotations}}]}}
      - {name: secrets, emptyDir: {}}
      - {name: templates, configMap: {name: templates}}
`

// podWith replaces texts of the manifest, in pairs.
func podWith(pairs ...string) string {
	return strings.NewReplacer(append(pairs, "TEMPLATE", `{{ secret "token" }}`)...).Replace(podManifest)
}

func validateJSON(t *testing.T, text string, args ...string) (v validationJSON, status int) {
	t.Helper()
	out, errs, status := runTool(t, text, append([]string{"validate", "-f", "-", "--output", "json"}, args...)...)
	decodeAll(t, out, &v)
	if v.Errors == nil || v.Warnings == nil {
		t.Errorf("a list is null: %s", out)
	}
	if errs != "" || strings.Contains(out, `\u003c`) || strings.Contains(out, os.TempDir()+"/syncer-") {
		t.Errorf("printed %q and %s", errs, out)
	}
	return v, status
}

func TestValidateOfAPod(t *testing.T) {
	const account = `{name: CONJUR_ACCOUNT, valueFrom: {configMapKeyRef: {name: elsewhere, key: account}}}`
	const authn = `{name: CONJUR_AUTHN_URL, value: "https://conjur.example.com/authn-jwt/dev"}`
	const url = `value: "https://conjur.example.com"`
	from := `valueFrom: {secretKeyRef: {name: x, key: y}}`
	for name, c := range map[string]struct {
		pairs    []string
		wrong    []string // key and a part of the message
		doubtful []string
	}{
		"right, with files that are only in the Pod": {},
		"all of the connection is elsewhere":         {pairs: []string{url, from, authn, `{name: CONJUR_AUTHN_URL, ` + from + `}`}},
		"no account":                                 {pairs: []string{account, `{name: A}`}, wrong: []string{"CONJUR_ACCOUNT", "not set"}},
		"no account, but a ConfigMap elsewhere":      {pairs: []string{account, `{name: A}`, "env:", "envFrom: [{configMapRef: {name: elsewhere}}]\n        env:"}},
		"another authenticator":                      {pairs: []string{"authn-jwt/dev", "authn-oidc/dev"}, wrong: []string{"CONJUR_AUTHN_URL", "authn-oidc"}},
		"a mode that is elsewhere": {pairs: []string{account, account + "\n        - {name: CONTAINER_MODE, " + from + "}",
			"conjur.org/secrets-destination: file", "conjur.org/secrets-destination: file\n        conjur.org/secrets-refresh-interval: 5m"}},
		"a broken template": {pairs: []string{"TEMPLATE", "{{ < }}"}, wrong: []string{"/conjur/templates/web.tpl", "web:1"}},
		"a template for another group": {pairs: []string{"web.tpl", "other.tpl"},
			wrong: []string{"conjur.org/secret-file-template.web", "/conjur/templates/web.tpl"}},
		"a template that is elsewhere": {pairs: []string{"configMap: {name: templates}", "configMap: {name: elsewhere}"}},
		"a configuration file":         {pairs: []string{account, account + "\n        - {name: SYNCER_CONFIG, value: /etc/syncer.yaml}"}, wrong: []string{"SYNCER_CONFIG", "--config"}},
		"an annotation of the Deployment": {pairs: []string{"{name: shop}", "{name: shop, annotations: {conjur.org/log-level: debug, conjur.org/secrets-destination: file, example.com/x: y}}"},
			doubtful: []string{"conjur.org/log-level", "the Deployment's own"}},
		"the annotations do not get there": {pairs: []string{"/conjur/podinfo", "/elsewhere"}, doubtful: []string{"volumeMounts", "/conjur/podinfo"}},
		"one volume for all":               {pairs: []string{"mountPath: /conjur/secrets", "mountPath: /conjur/"}, doubtful: []string{"volumeMounts", "Syncer makes it"}},
		"a volume that is too far above":   {pairs: []string{"mountPath: /conjur/secrets", "mountPath: /"}, doubtful: []string{"volumeMounts", "Syncer does not make it"}},
		"a volume below":                   {pairs: []string{"mountPath: /conjur/secrets", "mountPath: /conjur/secrets/web"}},
		"the files do not get out":         {pairs: []string{"/conjur/secrets", "/elsewhere"}, doubtful: []string{"volumeMounts", "/conjur/secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, status := validateJSON(t, podWith(c.pairs...))
			if want := len(c.wrong) / 2; status != want || !only(v.Errors, c.wrong) {
				t.Errorf("status %d, errors %q, want %q", status, v.Errors, c.wrong)
			}
			if !only(v.Warnings, c.doubtful) {
				t.Errorf("warnings %q, want %q", v.Warnings, c.doubtful)
			}
		})
	}
}

// only tells whether there is one problem, of the key and with the text in
// want, or none if want is empty.
func only(problems []problemJSON, want []string) bool {
	if len(want) == 0 {
		return len(problems) == 0
	}
	return len(problems) == 1 && problems[0].Key == want[0] && strings.Contains(problems[0].Message, want[1])
}

func TestValidateOfAPodWithMoreFromFlags(t *testing.T) {
	dir := files(t, "web.tpl", "{{ < }}", "syncer.yaml", "log: {level: loud}\n")
	if v, _ := validateJSON(t, podWith(), "--templates-dir", dir); !only(v.Errors, []string{dir + "/web.tpl", "web:1"}) {
		t.Errorf("with a folder of templates: %q", v.Errors)
	}
	if v, _ := validateJSON(t, podWith(), "--config", dir+"/syncer.yaml"); len(v.Errors) != 1 || !strings.Contains(v.Errors[0].Key, "syncer.yaml:1: log.level") {
		t.Errorf("with a configuration file: %q", v.Errors)
	}
	without := podWith("CONJUR_", "OTHER_")
	if v, status := validateJSON(t, without); status != 0 {
		t.Errorf("without a connection: %q", v.Errors)
	}
	if v, status := validateJSON(t, without, "--connection"); status != 1 || len(v.Errors) < 3 {
		t.Errorf("without a connection, but --connection: %q", v.Errors)
	}
}

func TestValidateOfSeveralWorkloadsNamesThem(t *testing.T) {
	second := strings.Replace(podWith("file-format.web: template", "file-format.web: toml"), "{name: shop}", "{name: other}", 1)
	v, _ := validateJSON(t, podWith()+"---\n"+second)
	if keys := keysOf(v.Errors); !slices.Equal(keys, []string{"Deployment/other: conjur.org/secret-file-format.web"}) {
		t.Errorf("errors %q", v.Errors)
	}
}

func TestMigrateNotes(t *testing.T) {
	text := podWith("secrets-destination: file", `secrets-destination: file
        conjur.org/container-mode: sidecar
        conjur.org/secrets-refresh-interval: 5m
        conjur.org/conjur-secrets.b: "- a"
        conjur.org/secret-file-format.b: bash`, "{name: JWT_TOKEN_PATH,", "{name: RETRY_COUNT_LIMIT, value: \"3\"}\n        - {name: JWT_TOKEN_PATH,")
	var first string
	for range 30 { // the order must not depend on that of a map
		out, errs, status := runTool(t, text, "migrate", "-f", "-", "--output", "json")
		if status != 0 || errs != "" || first != "" && out != first {
			t.Fatalf("status %d, %q, %s\nnot as before: %s", status, errs, out, first)
		}
		first = out
	}
	var got migration
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, n := range got.Notes {
		keys = append(keys, strings.TrimPrefix(n.Key, "Deployment/shop: "))
	}
	want := []string{"conjur.org/secrets-refresh-interval", "RETRY_COUNT_LIMIT", "conjur.org/remove-deleted-secrets-enabled",
		"MY_POD_NAMESPACE", "CONJUR_CERT_FILE", "conjur.org/secret-file-format.b", "conjur.org/secret-file-format.web"}
	if !slices.Equal(keys, want) {
		t.Errorf("notes on %q,\nwant %q", keys, want)
	}
}

func TestMigrateRefusesACommandOfItsOwn(t *testing.T) {
	text := podWith("1.9.0\n", "1.9.0\n        command: [/usr/local/bin/secrets-provider]\n")
	out, errs, status := runTool(t, text, "migrate", "-f", "-")
	if out != "" || status != 1 || !strings.Contains(errs, "error: Deployment/shop: command: ") {
		t.Errorf("status %d, %q and %q", status, out, errs)
	}
	out, errs, status = runTool(t, text, "migrate", "-f", "-", "--output", "json")
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || errs != "" || got["manifest"] != nil || len(got["errors"]) < 10 {
		t.Errorf("as JSON: status %d, %q and %s", status, errs, out)
	}
}

// TestValidateTellsEveryFaultOfAManifest wants a problem for each fault, and a
// line for each problem.
func TestValidateTellsEveryFaultOfAManifest(t *testing.T) {
	text := podWith(`value: "https://conjur.example.com"`, "value: 12345678", "secrets-destination: file", "secrets-destination: yes")
	out, errs, status := runTool(t, text, "validate", "-f", "-")
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if out != "" || status != 1 || len(lines) != 2 || strings.Contains(errs, "12345678") {
		t.Fatalf("status %d, %q and\n%s", status, out, errs)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "error: standard input: Deployment/shop: ") {
			t.Errorf("the line %q", line)
		}
	}
}

func TestRenderOfSecretsAsJSON(t *testing.T) {
	values := files(t, "values.json", `{"p/a": "va"}`) + "/values.json"
	secret := secretManifest(t, nil, map[string]string{"conjur-map": "A: p/a"})
	out, errs, status := runTool(t, secret+"\n---\n"+secret, "render", "-f", "-", "--values", values, "--output", "json")
	var got struct {
		Kind  string
		Items []struct {
			Kind string
			Data map[string]string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || errs != "" {
		t.Fatalf("%v, status %d, %q and %s", err, status, errs, out)
	}
	if got.Kind != "List" || len(got.Items) != 2 || got.Items[1].Kind != "Secret" || got.Items[1].Data["A"] != "dmE=" {
		t.Errorf("got %+v", got)
	}
}
