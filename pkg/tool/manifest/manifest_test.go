package manifest_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
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
  annotations: {conjur.org/container-mode: not-this-one, conjur.org/log-level: debug, example.com/x: y}
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
	found, err := parse(t, text).Workloads[0].Providers("")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

func TestSecrets(t *testing.T) {
	m := parse(t, `{kind: Secret, metadata: {name: a, labels: {conjur.org/managed-by-provider: "true"}}, data: {conjur-map: eA==}}
---
kind: Secret
metadata: {name: b, labels: {conjur.org/managed-by-provider: "false"}}
stringData: {conjur-map: x}
---
kind: Secret
metadata: {name: c}
`)
	if len(m.Secrets) != 3 || !m.Secrets[0].Map || !m.Secrets[1].Map || m.Secrets[2].Map || m.Secrets[1].Name != "b" {
		t.Errorf("got %v", m.Secrets)
	}
	if !m.Secrets[0].Labelled || m.Secrets[1].Labelled || m.Secrets[2].Labelled {
		t.Error("not the first Secret alone has the label")
	}
}

func TestNamespacesAndConfigMaps(t *testing.T) {
	m := parse(t, "{kind: Secret, metadata: {name: a, namespace: ns}}\n---\n{kind: ConfigMap, metadata: {name: c}, data: {k: text}}")
	if got := m.Secrets[0].Namespace; got != "ns" {
		t.Errorf("namespace %q", got)
	}
	if c, ok := m.ConfigMap("c"); !ok || c.Data["k"] != "text" {
		t.Errorf("ConfigMap c is %v, %v", c, ok)
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
					again, err := manifest.Parse(out...)
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
