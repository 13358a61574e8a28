// Package deploy gives tests what the chart renders: its objects, the rights
// that it grants, and whole releases on a control plane of the tests.
package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/gobuild"
)

// ToolVariable is the environment variable with the path of deploy/tools/chart,
// as BuildTool builds it. Without it each rendering takes half a second more.
const ToolVariable = "SYNCER_CHART"

// Release is an installation of a chart. Empty fields are as the renderer has
// them: name and namespace "syncer", revision 1.
type Release struct {
	Name, Namespace string
	Revision        int
	Values          string // YAML
	Chart           string // the chart's folder; empty: Syncer's

	KubeVersion string   // such as v1.36.0
	APIVersions []string // that the cluster serves; nil: there is no cluster
}

// Objects renders the release's objects, in the order of their files.
func (r Release) Objects(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	out, err := r.Render()
	if err != nil {
		t.Fatal(err)
	}
	return Decode(t, out)
}

// Rules are the rules of all Roles that the release has in the namespace, in
// the order of the objects; namespace "" gives those of its ClusterRoles.
func (r Release) Rules(t testing.TB, namespace string) []rbacv1.PolicyRule {
	t.Helper()
	return Rules(t, r.Objects(t), namespace)
}

// Rules are the rules of all Roles of the namespace among the objects; of all
// ClusterRoles when it is "".
func Rules(t testing.TB, objects []*unstructured.Unstructured, namespace string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetNamespace() != namespace {
			continue
		}
		var role rbacv1.Role // a ClusterRole has its rules in the same place, a binding none
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules
}

// Render renders the release's objects as YAML. The error says what the chart
// has against the values.
func (r Release) Render() ([]byte, error) { return r.run("render") }

// Notes renders what an installation prints at its end.
func (r Release) Notes() ([]byte, error) { return r.run("render", "-notes") }

func (r Release) run(args ...string) ([]byte, error) {
	args = append(args, "-values", "-")
	if r.Name != "" {
		args = append(args, "-release", r.Name)
	}
	if r.Namespace != "" {
		args = append(args, "-namespace", r.Namespace)
	}
	if r.Revision != 0 {
		args = append(args, "-revision", strconv.Itoa(r.Revision))
	}
	if r.KubeVersion != "" {
		args = append(args, "-kube-version", r.KubeVersion)
	}
	for _, version := range r.APIVersions {
		args = append(args, "-api-version", version)
	}
	chart := r.Chart
	if chart == "" {
		root, err := gobuild.Root()
		if err != nil {
			return nil, err
		}
		chart = filepath.Join(root, "deploy", "chart", "syncer")
	}
	return chartTool(r.Values, append(args, chart)...)
}

// Kustomize renders the objects of the kustomization in a folder as YAML.
func Kustomize(dir string) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return chartTool("", "kustomize", dir)
}

// chartTool runs deploy/tools/chart. That is a module of its own, so that the
// engines of Helm and Kustomize are no dependencies of the product.
func chartTool(input string, args ...string) ([]byte, error) {
	if err := gobuild.Inputs("deploy"); err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Getenv(ToolVariable), args...)
	if cmd.Path == "" {
		root, err := gobuild.Root()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command("go", append([]string{"run", "./chart"}, args...)...)
		cmd.Dir = filepath.Join(root, "deploy", "tools")
	}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		text, _ := strings.CutSuffix(string(exit.Stderr), "exit status 1\n") // go run's own
		return nil, errors.New(strings.TrimSpace(text))
	}
	return out, err
}

// BuildTool builds deploy/tools/chart as the file path.
func BuildTool(path string) error {
	root, err := gobuild.Root()
	if err != nil {
		return err
	}
	return gobuild.Build(path, filepath.Join(root, "deploy", "tools"), "./chart")
}

// Decode reads YAML documents, each of them an object. A field that is written
// twice is an error.
func Decode(t testing.TB, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := sigsyaml.UnmarshalStrict(document, &content); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if content != nil {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}
