package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/deploy"
)

// features are what Syncer or its documents use, and not every version of Kubernetes has:
// an object with the feature by the heading of its column in compatibility.md.
var features = map[string]struct{ field, object string }{
	"`fileKeyRef`": {"fileKeyRef", `
apiVersion: v1
kind: Pod
metadata: {name: feature}
spec:
  containers:
  - name: app
    image: app
    env:
    - name: PASSWORD
      valueFrom: {fileKeyRef: {volumeName: secrets, path: db.env, key: PASSWORD}}
  volumes:
  - {name: secrets, emptyDir: {}}
`},
	"`RestartAllContainers`": {"restartPolicyRules", `
apiVersion: v1
kind: Pod
metadata: {name: feature}
spec:
  initContainers:
  - name: syncer
    image: syncer
    restartPolicy: Always
    restartPolicyRules:
    - action: RestartAllContainers
      exitCodes: {operator: In, values: [85]}
  containers:
  - {name: app, image: app}
`},
	"`MutatingAdmissionPolicy`": {"mutations", `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: feature}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{}"}
`},
	"`podCertificate`": {"podCertificate", `
apiVersion: v1
kind: Pod
metadata: {name: feature}
spec:
  containers:
  - {name: app, image: app}
  volumes:
  - name: identity
    projected:
      sources:
      - podCertificate: {signerName: example.com/conjur, keyType: ECDSAP256, credentialBundlePath: client.pem}
`},
}

// TestFeaturesOfKubernetesAreThoseOfTheTable: compatibility.md has a row for the API
// server's version, and its cells are what the API server does.
func TestFeaturesOfKubernetesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	c := deploy.Connect(t, cluster.Config())
	namespace := cluster.Namespace(t)
	version := c.Version()
	row := rowOfFeatures(t, version)
	if len(row) != len(features) {
		t.Fatalf("the row of %s has %d features, want %d", version, len(row), len(features))
	}
	for heading, want := range row {
		feature, ok := features[heading]
		if !ok {
			t.Fatalf("nothing tests the column %s", heading)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(feature.object), &object.Object); err != nil {
			t.Fatal(err)
		}
		made, err := c.Create(t.Context(), namespace, object, true)
		if got := answerTo(t, made, err, feature.field); got != want {
			t.Errorf("%s on Kubernetes %s: %s (%v), but compatibility.md says %s", heading, version, got, err, want)
		}
	}
}

// answerTo says in a word of the table what the API server did with an object.
func answerTo(t *testing.T, made *unstructured.Unstructured, err error, field string) string {
	switch {
	case meta.IsNoMatchError(err):
		return "absent"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "refused"
	case err != nil:
		t.Fatal(err)
	}
	text, err := json.Marshal(made.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"`+field+`"`) {
		return "on"
	}
	return "dropped"
}

// rowOfFeatures reads the row of a version from the table of compatibility.md, by the
// headings of its columns.
func rowOfFeatures(t *testing.T, version string) map[string]string {
	var headings []string
	for line := range strings.Lines(string(readFile(t, "../../docs/compatibility.md"))) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		switch {
		case strings.Contains(line, "| `fileKeyRef` |"):
			headings = cells[1:]
		case headings != nil && cells[0] == version && len(cells) == len(headings)+1:
			row := map[string]string{}
			for i, heading := range headings {
				row[heading] = cells[i+1]
			}
			return row
		}
	}
	t.Fatalf("compatibility.md has no row for the features of Kubernetes %s", version)
	return nil
}
