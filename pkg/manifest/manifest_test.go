package manifest_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/manifest"
)

// deployment has a provider beside an application, and the ConfigMaps that it
// refers to.
const deployment = `apiVersion: v1
kind: ConfigMap
metadata: {name: conjur-connect}
data:
  CONJUR_ACCOUNT: acct
  url: https://conjur.example.com
---
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  annotations: {conjur.org/container-mode: not-this-one}
spec:
  template:
    metadata:
      annotations:
        conjur.org/container-mode: sidecar
        conjur.org/conjur-secrets.db: |
          - user: a/b
    spec:
      initContainers:
      - name: wait
        image: busybox
      containers:
      - name: app
        image: registry.example.com/syncer/shop:1
      - name: provider
        image: registry.example.com:5000/cyberark/secrets-provider-for-k8s:1.9 # pinned
        envFrom:
        - prefix: X_
          configMapRef: {name: conjur-connect}
        env:
        - name: CONJUR_APPLIANCE_URL
          valueFrom: {configMapKeyRef: {name: conjur-connect, key: url}}
        - name: CONJUR_AUTHN_URL
          valueFrom: {configMapKeyRef: {name: elsewhere, key: url}}
        - name: MY_POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: RETRY_COUNT_LIMIT
          value: "3"
        - name: EMPTY
        - {name: JOINED, value: "https://$(HOST)/x"}
        lifecycle: {postStart: {exec: {command: [/bin/hook, now]}}}
        volumeMounts:
        - {name: podinfo, mountPath: /conjur/podinfo}
        - {name: templates, mountPath: /conjur/templates/}
        - {name: some, mountPath: /conjur/some}
        - {name: part, mountPath: /conjur/part/x.tpl, subPath: x.tpl}
      volumes:
      - name: podinfo
        downwardAPI: {items: []}
      - name: templates
        configMap: {name: tpl}
      - name: some
        configMap: {name: tpl, items: [{key: a.tpl, path: b.tpl}, {key: none, path: c.tpl}]}
      - name: part
        configMap: {name: tpl}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tpl}
data: {a.tpl: the text}
`

func parse(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func provider(t *testing.T, text string) *manifest.Container {
	t.Helper()
	c, err := parse(t, text).Workloads[0].Provider("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWorkload(t *testing.T) {
	m := parse(t, deployment)
	if len(m.Workloads) != 1 || m.Workloads[0].String() != "Deployment/shop" {
		t.Fatalf("workloads %v", m.Workloads)
	}
	want := map[string]string{"conjur.org/container-mode": "sidecar", "conjur.org/conjur-secrets.db": "- user: a/b\n"}
	if got := m.Workloads[0].Annotations; !maps.Equal(got, want) {
		t.Errorf("annotations %q", got)
	}
	var names []string
	for _, c := range m.Workloads[0].Containers {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"wait", "app", "provider"}) {
		t.Errorf("containers %q", names)
	}
}

func TestEnvironment(t *testing.T) {
	c := provider(t, deployment)
	want := map[string]manifest.Variable{
		"X_CONJUR_ACCOUNT":     {Value: "acct", Known: true},
		"X_url":                {Value: "https://conjur.example.com", Known: true},
		"CONJUR_APPLIANCE_URL": {Value: "https://conjur.example.com", Known: true},
		"CONJUR_AUTHN_URL":     {},
		"MY_POD_NAMESPACE":     {},
		"RETRY_COUNT_LIMIT":    {Value: "3", Known: true},
		"EMPTY":                {Known: true},
		"JOINED":               {},
	}
	if !maps.Equal(c.Env, want) {
		t.Errorf("got %v", c.Env)
	}
	if c.Open {
		t.Error("the environment is open, but all its ConfigMaps are there")
	}
	for name, from := range map[string]string{
		"a ConfigMap elsewhere": "configMapRef: {name: elsewhere}",
		"a Secret":              "secretRef: {name: conjur-connect}",
	} {
		if c := provider(t, strings.Replace(deployment, "configMapRef: {name: conjur-connect}", from, 1)); !c.Open {
			t.Errorf("%s: the environment is not open", name)
		}
	}
}

func TestVariablesWinOverWholeConfigMaps(t *testing.T) {
	c := provider(t, strings.NewReplacer("prefix: X_", `prefix: ""`, "name: EMPTY", "name: CONJUR_ACCOUNT\n          value: other").Replace(deployment))
	if got := c.Env["CONJUR_ACCOUNT"].Value; got != "other" {
		t.Errorf("got %q", got)
	}
}

func TestMounts(t *testing.T) {
	c := provider(t, deployment)
	for folder, want := range map[string]struct {
		files   map[string]string
		mounted bool
	}{
		"/conjur/podinfo":       {nil, true},
		"/conjur/podinfo/below": {nil, true},
		"/conjur/podinfo2":      {nil, false},
		"/conjur/templates":     {map[string]string{"a.tpl": "the text"}, true},
		"/conjur/some":          {map[string]string{"b.tpl": "the text"}, true},
		"/conjur/part":          {nil, true},
		"/conjur/secrets":       {nil, false},
	} {
		files, mounted := c.Mounted(folder)
		if mounted != want.mounted || !maps.Equal(files, want.files) || (files == nil) != (want.files == nil) {
			t.Errorf("%s: got %v, %v", folder, files, mounted)
		}
	}
	if !slices.Equal(c.PostStart, []string{"/bin/hook", "now"}) {
		t.Errorf("hook %q", c.PostStart)
	}
}

// TestKinds puts the same Pod into each kind of object that makes one.
func TestKinds(t *testing.T) {
	const pod = `{metadata: {annotations: {a: b}}, spec: {containers: [{name: p, image: syncer}]}}`
	for kind, text := range map[string]string{
		"Pod":         strings.Replace(pod, "{metadata: {", "{kind: Pod, metadata: {name: n, ", 1),
		"Deployment":  `{kind: Deployment, metadata: {name: n}, spec: {template: ` + pod + `}}`,
		"StatefulSet": `{kind: StatefulSet, metadata: {name: n}, spec: {template: ` + pod + `}}`,
		"DaemonSet":   `{kind: DaemonSet, metadata: {name: n}, spec: {template: ` + pod + `}}`,
		"ReplicaSet":  `{kind: ReplicaSet, metadata: {name: n}, spec: {template: ` + pod + `}}`,
		"Job":         `{kind: Job, metadata: {name: n}, spec: {template: ` + pod + `}}`,
		"CronJob":     `{kind: CronJob, metadata: {name: n}, spec: {jobTemplate: {spec: {template: ` + pod + `}}}}`,
	} {
		for _, text := range []string{text, `{kind: List, items: [` + text + `]}`} {
			m := parse(t, text)
			if len(m.Workloads) != 1 || m.Workloads[0].String() != kind+"/n" || m.Workloads[0].Annotations["a"] != "b" {
				t.Errorf("%s: got %v", text, m.Workloads)
			} else if _, err := m.Workloads[0].Provider(""); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if m := parse(t, `{kind: Service, metadata: {name: n}, spec: {template: 5}}`); len(m.Workloads) != 0 {
		t.Errorf("a Service is %v", m.Workloads)
	}
}

func TestProviderIsFoundByItsImage(t *testing.T) {
	for image, want := range map[string]bool{
		"syncer":                              true,
		"secretsync/syncer:1.0@sha256:abcdef": true,
		"r.example.com:5000/secrets-provider-redhat": true,
		"cyberark/secrets-provider-for-k8s:1.9":      true,
		"r.example.com/syncer/app:1":                 false,
		"app:syncer":                                 false,
		"app@sha256:syncer":                          false,
		`""`:                                         false,
	} {
		m := parse(t, `{kind: Pod, spec: {containers: [{name: p, image: "`+strings.Trim(image, `"`)+`"}]}}`)
		if _, err := m.Workloads[0].Provider(""); (err == nil) != want || err != nil && !errors.Is(err, manifest.ErrNoProvider) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

func TestProviderByName(t *testing.T) {
	w := parse(t, `{kind: Pod, spec: {initContainers: [{name: a, image: syncer}], containers: [{name: b, image: syncer}, {name: c, image: x}]}}`).Workloads[0]
	if _, err := w.Provider(""); err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("two providers: %v", err)
	}
	if c, err := w.Provider("c"); err != nil || c.Image != "x" {
		t.Errorf("got %v, %v", c, err)
	}
	if _, err := w.Provider("d"); !errors.Is(err, manifest.ErrNoProvider) {
		t.Errorf("got %v", err)
	}
}

func TestSecrets(t *testing.T) {
	m := parse(t, `{kind: Secret, metadata: {name: a}, data: {conjur-map: eA==}}
---
kind: Secret
metadata: {name: b}
stringData: {conjur-map: x}
---
kind: Secret
metadata: {name: c}
`)
	if len(m.Secrets) != 3 || !m.Secrets[0].Map || !m.Secrets[1].Map || m.Secrets[2].Map || m.Secrets[1].Name != "b" || m.Secrets[1].Line != 3 {
		t.Errorf("got %v", m.Secrets)
	}
}

func TestNamespacesAndConfigMaps(t *testing.T) {
	m := parse(t, "{kind: Secret, metadata: {name: a, namespace: ns}}\n---\n{kind: ConfigMap, metadata: {name: c}, data: {k: text}}")
	if got := m.Secrets[0].Namespace; got != "ns" {
		t.Errorf("namespace %q", got)
	}
	if data, ok := m.ConfigMap("c"); !ok || data["k"] != "text" {
		t.Errorf("ConfigMap c is %v, %v", data, ok)
	}
	if _, ok := m.ConfigMap("other"); ok {
		t.Error("a ConfigMap that is not there is found")
	}
}

// TestBadManifests wants every fault reported, with its line, and no value.
func TestBadManifests(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":     {"kind: [", []string{"line 1"}},
		"a template":  {"kind: {{ .Kind }}", []string{"line 1", "not of the type"}},
		"a word":      {"kind: Pod\n---\ntop-secret\n", []string{"line 3", "not of the type"}},
		"wrong types": {"kind: Pod\nmetadata: top-secret\nspec:\n  containers: top-secret\n", []string{"Pod/: line 2", "line 4"}},
		"wrong kind":  {"kind: [top-secret]\n", []string{"line 1"}},
		"wrong spec":  {"kind: Job\nmetadata: {name: n}\nspec: top-secret\n", []string{"Job/n: line 3"}},
		"twice":       {"kind: Pod\nspec: {}\nspec: {}\n", []string{"line 3", "twice"}},
		"no text": {`kind: Pod
metadata:
  annotations:
    a: true
    b: 5
    c: "5"
    d: yes
    e:
    f: "yes"
spec:
  containers:
  - name: p
    image: 5
    env:
    - {name: A, value: 1234567}
    - {name: B, value: "1234567"}
    - {name: C, value: on}
`, []string{"line 4: the annotation a", "line 5: the annotation b", "line 7: the annotation d", "line 8: the annotation e",
			"line 13: the image", "line 15: the value of the variable A", "line 17: the value of the variable C"}},
	} {
		m, err := manifest.Parse([]byte(c.text))
		if err == nil {
			t.Errorf("%s: accepted as %v", name, m)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is missing in\n%v", name, part, err)
			}
		}
		if n := strings.Count(err.Error(), "must be text"); n != len(c.want) && name == "no text" {
			t.Errorf("%d faults in\n%v", n, err)
		}
		if strings.Contains(err.Error(), "secret") && !strings.Contains(c.want[0], "secret") || strings.Contains(err.Error(), "1234567") {
			t.Errorf("%s: a value is shown in\n%v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(deployment))
	f.Add([]byte("{kind: List, items: [&a {kind: Pod}, *a]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := manifest.Parse(text)
		if err != nil {
			return
		}
		for _, w := range m.Workloads {
			for _, c := range w.Containers {
				if out, err := m.WithImage("img", c); err == nil {
					again, err := manifest.Parse(out)
					if err != nil {
						t.Fatalf("%v in %q", err, out)
					}
					if len(again.Workloads) != len(m.Workloads) {
						t.Fatalf("%q became %q", text, out)
					}
				}
			}
		}
	})
}
