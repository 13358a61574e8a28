package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// incumbent is a Deployment that runs the Secrets Provider as a sidecar, its
// connection in a ConfigMap that is elsewhere.
const incumbent = `# The shop.
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    metadata:
      annotations:
        conjur.org/container-mode: sidecar   # stays
        conjur.org/secrets-destination: file
        conjur.org/secrets-refresh-enabled: "1"
        conjur.org/retry-interval-sec: "0"
        conjur.org/conjur-secrets.db: |
          - user: db/user
        conjur.org/secret-file-format.db: FORMAT
    spec:
      containers:
      - name: app
        image: example/shop:1
      - name: provider
        image: cyberark/secrets-provider-for-k8s:1.9.0  # the incumbent
        envFrom:
        - configMapRef: {name: conjur}
        lifecycle: {postStart: {exec: {command: [sh, -c, /usr/local/bin/conjur-secrets-provided.sh]}}}
        volumeMounts:
        - {name: templates, mountPath: /conjur/templates}
      volumes:
      - name: templates
        configMap: {name: elsewhere}
`

func manifestWith(format string) string { return strings.Replace(incumbent, "FORMAT", format, 1) }

func TestMigrateReplacesTheImageAndNothingElse(t *testing.T) {
	text := manifestWith("template")
	out, errs, status := tool(t, text, "migrate", "-f", "-", "--image", "example/syncer:1")
	want := strings.Replace(text, "cyberark/secrets-provider-for-k8s:1.9.0", "example/syncer:1", 1)
	if out != want || status != 0 {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	for _, note := range []string{"secrets-refresh-enabled", "retry-interval-sec", "without a restart", "syncer wait"} {
		if !strings.Contains(errs, note) {
			t.Errorf("no note on %s: %s", note, errs)
		}
	}
	text = strings.Replace(text, "[sh, -c, /usr", "[/usr", 1)
	if _, errs, status = tool(t, text, "migrate", "-f", "-"); status != 0 || strings.Contains(errs, "syncer wait") {
		t.Errorf("a note on a hook without a shell, or status %d: %s", status, errs)
	}
}

func TestMigrateOfABadSettingPrintsNothing(t *testing.T) {
	out, errs, status := tool(t, manifestWith("toml"), "migrate", "-f", "-")
	if out != "" || status != 1 || !strings.Contains(errs, "Deployment/shop: conjur.org/secret-file-format.db") {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
}

func TestMigrateAsJSON(t *testing.T) {
	out, _, status := tool(t, manifestWith("yaml"), "migrate", "-f", "-", "--output", "json", "--image", "example/syncer:1")
	var got migration
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
		t.Fatalf("%v, status %d: %s", err, status, out)
	}
	if !strings.Contains(got.Manifest, "image: example/syncer:1  # the incumbent") || len(got.Notes) == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestValidateOfAManifest(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		status int
		says   string
	}{
		"good":              {manifestWith("yaml"), 0, ""},
		"template mounted":  {manifestWith("template"), 0, ""},
		"bad format":        {manifestWith("toml"), 1, "secret-file-format.db"},
		"no provider":       {strings.Replace(manifestWith("yaml"), "cyberark/secrets-provider-for-k8s", "example/other", 1), 1, "no container of a secrets provider"},
		"no workload":       {"kind: Service\nmetadata: {name: x}\n", 1, "no workload"},
		"not YAML":          {"a: [", 1, "line 1"},
		"no template there": {strings.Replace(manifestWith("template"), "/conjur/templates", "/elsewhere", 1), 1, "template"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := tool(t, test.text, "validate", "-f", "-")
			if status != test.status || out != "" || !strings.Contains(errs, test.says) {
				t.Errorf("status %d, want %d: %s%s", status, test.status, out, errs)
			}
		})
	}
}
