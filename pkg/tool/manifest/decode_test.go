package manifest_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// TestFieldsHaveTheTypesOfTheAPI, each with its line; what the types of Kubernetes
// decode themselves, and fields that these do not have, are left to Kubernetes.
func TestFieldsHaveTheTypesOfTheAPI(t *testing.T) {
	_, err := manifest.Parse([]byte(`kind: Deployment
metadata: {name: shop, annotations: {example.com/a: 1}}
spec:
  replicas: "2"
  template:
    metadata:
      labels: {app: 5}
    spec:
      more: [1]
      containers:
      - name: app
        image: app
        args: [run, 8080]
        tty: "no"
        ports: [{containerPort: "80"}]
        resources: {limits: {cpu: 0.5, memory: 1Gi}}
        livenessProbe: {httpGet: {port: 8080}}
        readinessProbe: {httpGet: {port: http}}
      volumes: {name: v}
`))
	want := []string{
		"line 7: the label app must be text",
		"container app: line 13: an item of the args must be text",
		"container app: line 14: the value has another type", "container app: line 15: the value has another type",
		"line 19: the value has another type",
	}
	if err == nil || strings.Count(err.Error(), "\n")+1 != len(want) {
		t.Fatalf("got %v", err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), "Deployment/shop: "+part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}

// TestImageThatIsMergedIn is known, and is replaced by hand.
func TestImageThatIsMergedIn(t *testing.T) {
	m := parse(t, `kind: Pod
spec:
  base: &base {image: syncer}
  containers:
  - <<: *base
    name: p
`)
	found, err := m.Workloads[0].Providers("")
	if err != nil || found[0].Image != "syncer" {
		t.Fatal(found, err)
	}
	if out, err := m.WithImage("new", found...); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("the image that others may have too became\n%s", out)
	}
}
