package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
)

// chartJob is a Job as the Secrets Provider's chart makes it, with its Role.
const chartJob = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: provider}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, update]
---
apiVersion: batch/v1
kind: Job
metadata: {name: provider}
spec:
  template:
    metadata: {annotations: {}}
    spec:
      restartPolicy: Never
      containers:
      - name: cyberark-secrets-provider
        image: cyberark/secrets-provider-for-k8s:1.9.0
        env:
        - {name: CONTAINER_MODE, value: application}
        - {name: SECRETS_DESTINATION, value: k8s_secrets}
        - {name: K8S_SECRETS, value: "db, web"}
        - {name: MY_POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: CONJUR_APPLIANCE_URL, value: "https://conjur.example.com"}
        - {name: CONJUR_AUTHN_URL, value: "https://conjur.example.com/authn-jwt/dev"}
        - {name: CONJUR_ACCOUNT, value: acct}
---
apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations:
    conjur.org/conjur-secrets.app: "- u: app/user"
    conjur.org/secret-file-format.app: json
stringData:
  conjur-map: |
    password: app/db/password
`

type migration struct {
	Manifest string
	Notes    []config.Problem
	config.Validation
}

// migrateJSON migrates with changes to chartJob, in pairs.
func migrateJSON(t *testing.T, pairs ...string) (m migration, notes []string, status int) {
	t.Helper()
	text := chartJob
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	out, errs, status := runTool(t, text, "migrate", "-f", "-", "--output", "json", "--image", "example/syncer:1")
	if err := json.Unmarshal([]byte(out), &m); err != nil || errs != "" {
		t.Fatalf("%v in %q, %q", err, out, errs)
	}
	for _, n := range m.Notes {
		notes = append(notes, n.Key+": "+n.Message)
	}
	return m, notes, status
}

func TestMigrateOfAJobForSecrets(t *testing.T) {
	m, notes, status := migrateJSON(t)
	if want := strings.Replace(chartJob, "cyberark/secrets-provider-for-k8s:1.9.0", "example/syncer:1", 1); m.Manifest != want || status != 0 {
		t.Errorf("status %d, %+v", status, m)
	}
	if len(m.Errors)+len(m.Warnings) > 0 {
		t.Errorf("errors %q, warnings %q", m.Errors, m.Warnings)
	}
	for _, want := range []string{
		"Job/provider: conjur.org/remove-deleted-secrets-enabled: one variable that is gone takes away only the data keys",
		"Job/provider: SECRETS_DESTINATION: a Secret is compared with what it holds",
		"Secret/db: conjur.org/secret-file-format.app: counts for the data key of its group",
		"Role/provider: update suffices; with patch besides",
		"RBAC: with create and patch on events",
	} {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("no note %q in %q", want, notes)
		}
	}
	if len(notes) != 5 {
		t.Errorf("%d notes: %q", len(notes), notes)
	}
}

// TestMigrateTellsRights changes what a Job needs.
func TestMigrateTellsRights(t *testing.T) {
	const list, mode = `        - {name: K8S_SECRETS, value: "db, web"}` + "\n", "value: application"
	for name, c := range map[string]struct {
		pairs []string
		must  []string // what is to be done by hand
		note  string
	}{
		"a list":                 {nil, nil, "Role/provider: update suffices; with patch besides"},
		"by label":               {[]string{list, ""}, []string{"Role/provider: to be done by hand: the service account lacks list on Secrets"}, "Role/provider: update suffices"},
		"a sidecar":              {[]string{mode, "value: sidecar"}, nil, "Role/provider: with watch besides"},
		"by name":                {[]string{"verbs: [get, update]", "resourceNames: [db, web]\n  verbs: [get, patch]"}, nil, ""},
		"by name and label":      {[]string{list, "", "verbs: [get, update]", "resourceNames: [db]\n  verbs: [get, list, patch]"}, []string{"the service account lacks get, list, patch on Secrets", "resourceNames do not go with"}, ""},
		"no write":               {[]string{"verbs: [get, update]", "verbs: [get]"}, []string{"the service account lacks patch on Secrets"}, ""},
		"everything":             {[]string{"verbs: [get, update]", `verbs: ["*"]`}, nil, ""},
		"both":                   {[]string{"verbs: [get, update]", `verbs: [get, update, patch]`}, nil, "Role/provider: update is no longer needed beside patch"},
		"a Role for other ends":  {[]string{"resources: [secrets]", "resources: [pods]"}, nil, "RBAC: the service account needs the verbs get on Secrets, and patch or update"},
		"an unknown destination": {[]string{"value: k8s_secrets", "valueFrom: {configMapKeyRef: {name: x, key: y}}"}, nil, "Role/provider: update suffices"},
	} {
		m, notes, status := migrateJSON(t, c.pairs...)
		m.Warnings = slices.DeleteFunc(m.Warnings, func(p config.Problem) bool { return strings.Contains(p.Message, "deprecated") })
		if status != 0 || len(m.Warnings) != len(c.must) {
			t.Errorf("%s: status %d, %q, want %q", name, status, m.Warnings, c.must)
			continue
		}
		for i, want := range c.must {
			if got := m.Warnings[i]; !strings.Contains(got.Key+": "+got.Message, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if c.note != "" && !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, c.note) }) {
			t.Errorf("%s: no note %q in %q", name, c.note, notes)
		}
	}
}

func TestMigrateOfADeploymentForMany(t *testing.T) {
	m, notes, status := migrateJSON(t, "kind: Job", "kind: Deployment", "value: application", "value: standalone",
		`{name: K8S_SECRETS, value: "db, web"}`, `{name: NAMESPACE_ALLOWLIST, value: "shop,billing"}`)
	if status != 0 || len(m.Errors) > 0 {
		t.Errorf("status %d, %q", status, m.Errors)
	}
	for _, want := range []string{
		"Deployment/provider: NAMESPACE_ALLOWLIST: the namespaces that are listed are served",
		"Deployment/provider: SECRETS_DESTINATION: a Secret that is altered, or made anew, is filled again, within seconds",
	} {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("no note %q in %q", want, notes)
		}
	}
	if m, _, status := migrateJSON(t, "value: application", "value: standalone"); status != 1 || len(m.Errors) != 2 {
		t.Errorf("without namespaces, with a list: status %d, %q", status, m.Errors)
	}
}

func TestMigrateOfACronJob(t *testing.T) {
	m, _, status := migrateJSON(t, "kind: Job\nmetadata: {name: provider}\nspec:\n", "kind: CronJob\nmetadata: {name: provider}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: p, image: \"x/secrets-provider-for-k8s:1\", env: [{name: SECRETS_DESTINATION, value: k8s_secrets}, {name: MY_POD_NAMESPACE, value: ns}]}]}}}}}\n---\nkind: Ignored\nspec:\n")
	if status != 0 || !strings.Contains(m.Manifest, `image: "example/syncer:1"`) {
		t.Errorf("status %d, %q, %s", status, m.Errors, m.Manifest)
	}
}

func TestMigrateChecksSecrets(t *testing.T) {
	m, _, status := migrateJSON(t, "password: app/db/password", "password: app/db/", `"- u: app/user"`, `"- u: {}"`, "value: k8s_secrets", "value: k8s_secret")
	if status != 1 || m.Manifest != "" {
		t.Errorf("status %d, %+v", status, m)
	}
	keys := []string{}
	for _, p := range m.Errors {
		keys = append(keys, p.Key)
	}
	if want := []string{"Job/provider: SECRETS_DESTINATION", "Secret/db: conjur-map", "Secret/db: conjur.org/conjur-secrets.app"}; !slices.Equal(keys, want) {
		t.Errorf("errors %q", m.Errors)
	}
	m, _, _ = migrateJSON(t, "secret-file-format.app: json", "secret-file-template.app: '{{ secret \"v\" }}'")
	if len(m.Errors) != 1 || m.Errors[0].Key != "Secret/db: conjur.org/secret-file-template.app" {
		t.Errorf("with a broken template: %q", m.Errors)
	}
	// Secrets alone have nothing to replace.
	_, text, _ := strings.Cut(chartJob, "---\napiVersion: v1\n")
	out, errs, status := runTool(t, text, "migrate", "-f", "-")
	if out != text || status != 0 || !strings.HasPrefix(errs, "note: Secret/db: ") {
		t.Errorf("status %d, %q and %q", status, out, errs)
	}
}

// deployed is a Deployment with its configuration file in a ConfigMap.
const deployed = `apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data:
  syncer.yaml: |
    containerMode: standalone
    secretsDestination: k8s_secrets
    conjur: {applianceUrl: "https://conjur.example.com", account: acct, authnUrl: "https://conjur.example.com/authn-jwt/x"}
    kubernetes: {namespaces: [shop]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: syncer}
spec:
  template:
    spec:
      containers:
      - name: syncer
        image: secretsync/syncer:1
        args: [--config, /etc/syncer/syncer.yaml]
        env:
        - {name: MY_POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        volumeMounts:
        - {name: config, mountPath: /etc/syncer}
      volumes:
      - name: config
        configMap: {name: config}
`

func TestValidateOfAMountedConfigFile(t *testing.T) {
	const args, env = "args: [--config, /etc/syncer/syncer.yaml]", "env:\n"
	for name, c := range map[string]struct{ old, new, key, want string }{
		"right":              {},
		"one argument":       {old: args, new: "args: [--config=/etc/syncer/syncer.yaml]"},
		"a variable":         {old: args + "\n        " + env, new: env + "        - {name: SYNCER_CONFIG, value: /etc/syncer/syncer.yaml}\n"},
		"a bad setting":      {old: "containerMode: standalone", new: "containerMode: alone", key: "/etc/syncer/syncer.yaml:1: containerMode", want: "is not a container mode"},
		"no account":         {old: "account: acct, ", key: "CONJUR_ACCOUNT", want: "not set"},
		"a name not mounted": {old: "--config, /etc/syncer/syncer.yaml", new: "--config, /etc/other.yaml", key: "SYNCER_CONFIG", want: "/etc/other.yaml is in the Pod"},
	} {
		text := deployed
		if c.old != "" {
			if text = strings.Replace(deployed, c.old, c.new, 1); text == deployed {
				t.Fatalf("%s: nothing is replaced", name)
			}
		}
		v, status := validateJSON(t, text)
		if c.key == "" && (status != 0 || len(v.Warnings) > 0) || c.key != "" && !only(v.Errors, []string{c.key, c.want}) {
			t.Errorf("%s: status %d, %q, %q", name, status, v.Errors, v.Warnings)
		}
	}
}
