package manifest_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

func TestWorkload(t *testing.T) {
	m := parse(t, deployment)
	if len(m.Workloads) != 1 || m.Workloads[0].String() != "Deployment/shop" {
		t.Fatalf("workloads %v", m.Workloads)
	}
	want := map[string]string{"conjur.org/container-mode": "sidecar", "conjur.org/conjur-secrets.db": "- user: a/b\n"}
	if got := m.Workloads[0].Annotations; !maps.Equal(got, want) {
		t.Errorf("annotations %q", got)
	}
	if got := m.Workloads[0].Outside; !slices.Equal(got, []string{"conjur.org/log-level"}) {
		t.Errorf("annotations of the object alone: %q", got)
	}
	var names []string
	for _, c := range m.Workloads[0].Containers {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"wait", "app", "provider"}) {
		t.Errorf("containers %q", names)
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
			} else if _, err := m.Workloads[0].Providers(""); err != nil {
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
		if _, err := m.Workloads[0].Providers(""); (err == nil) != want || err != nil && !errors.Is(err, manifest.ErrNoProvider) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

func TestProviderByName(t *testing.T) {
	w := parse(t, `{kind: Pod, spec: {initContainers: [{name: a, image: syncer}], containers: [{name: b, image: syncer}, {name: c, image: x}]}}`).Workloads[0]
	if found, err := w.Providers(""); err != nil || len(found) != 2 || found[0].Name != "a" || found[1].Name != "b" {
		t.Errorf("two providers: %v, %v", found, err)
	}
	if found, err := w.Providers("c"); err != nil || len(found) != 1 || found[0].Image != "x" {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := w.Providers("d"); !errors.Is(err, manifest.ErrNoProvider) {
		t.Errorf("got %v", err)
	}
}
