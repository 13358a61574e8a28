package deploy_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/test/deploy"
)

// TestChartsMayIncludeTheSidecar: a chart that depends on Syncer's chart gets its templates,
// but no objects.
func TestChartsMayIncludeTheSidecar(t *testing.T) {
	ns := restricted(t)
	objects := deploy.Release{Name: "shop", Namespace: ns, Chart: appChart(t)}.Objects(t)
	if len(objects) != 1 {
		t.Fatalf("%d objects, want the application's Deployment only", len(objects))
	}
	pod := podOf(t, objects[0])
	apiServer := deploy.Connect(t, cluster.Config())
	for _, o := range []*unstructured.Unstructured{objects[0], pod} {
		if _, err := apiServer.Create(t.Context(), ns, o, true); err != nil {
			t.Errorf("%s: %v", o.GetKind(), err)
		}
	}
	if _, err := loadSidecar(t, pod); err != nil {
		t.Error(err)
	}
}

// TestExampleIsConfigured: Syncer accepts the annotations and variables of the example's
// Pod.
func TestExampleIsConfigured(t *testing.T) {
	for shape, mode := range map[string]config.Mode{"example": config.ModeSidecar, "init": config.ModeInit} {
		for _, o := range (deploy.Release{Values: values(shape, "syncer", "other")}).Objects(t) {
			pod := podOf(t, o)
			if pod == nil {
				continue
			}
			if mode == config.ModeInit { // which cannot refresh
				unstructured.RemoveNestedField(pod.Object, "metadata", "annotations", "conjur.org/secrets-refresh-interval")
			}
			cfg, err := loadSidecar(t, pod)
			if err != nil {
				t.Fatalf("%s: %v", shape, err)
			}
			if cfg.Mode != mode || len(cfg.Targets) != 1 {
				t.Errorf("%s: mode %s with %d targets, want %s with one", shape, cfg.Mode, len(cfg.Targets), mode)
			}
		}
	}
}

// loadSidecar loads the configuration as Syncer's container in the Pod would.
func loadSidecar(t *testing.T, object *unstructured.Unstructured) (*config.Config, error) {
	t.Helper()
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		t.Fatal(err)
	}
	var annotations bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		fmt.Fprintf(&annotations, "%s=%q\n", key, pod.Annotations[key])
	}
	path := filepath.Join(t.TempDir(), "annotations")
	if err := os.WriteFile(path, annotations.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, pod, config.Sources{Annotations: config.ReadFile(path)}, nil)
}

// load loads the configuration of Syncer's container, with extra variables. A
// warning fails the test.
func load(t *testing.T, pod corev1.Pod, src config.Sources, extra map[string]string) (*config.Config, error) {
	t.Helper()
	env := map[string]string{}
	maps.Copy(env, extra)
	for _, v := range containerIn(pod).Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = "syncer"
		}
	}
	src.Getenv = func(name string) string { return env[name] }
	src.Assume.Files = true
	cfg, warnings, err := config.Load(src.Read())
	for _, w := range warnings {
		t.Errorf("warning: %v", w)
	}
	return cfg, err
}

// TestContainersSayWhyTheyEndAndKeepToTheirLimit in all shapes: "kubectl describe pod" shows
// the end of the log, and GOMEMLIMIT follows the memory limit.
func TestContainersSayWhyTheyEndAndKeepToTheirLimit(t *testing.T) {
	for limit, want := range map[string]string{"64Mi": "49152KiB", "2Gi": "1536MiB", "1.5Gi": "", "100M": "", "": ""} {
		memory := fmt.Sprintf("{limits: {memory: %q}}", limit)
		if limit == "" {
			memory = "{limits: null}"
		}
		for _, shape := range []string{"deployment", "job", "example"} {
			values := connection + "shape: " + shape + "\nresources: " + memory + "\nsidecar: {resources: " + memory + "}\n"
			for _, o := range (deploy.Release{Values: values}).Objects(t) {
				pod := podOf(t, o)
				if pod == nil {
					continue
				}
				c := containerOf(t, pod)
				i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
				if i < 0 || c.Env[i].Value != want || (c.Env[i].ValueFrom == nil) != (want != "") {
					t.Errorf("%s with the limit %q: %+v, want GOMEMLIMIT %q", shape, limit, c.Env, want)
				}
				if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
					t.Errorf("%s: %s", shape, c.TerminationMessagePolicy)
				}
			}
		}
	}
}

// containerOf returns Syncer's container.
func containerOf(t *testing.T, object *unstructured.Unstructured) corev1.Container {
	t.Helper()
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		t.Fatal(err)
	}
	return containerIn(pod)
}

func containerIn(pod corev1.Pod) corev1.Container {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	return containers[slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "syncer" })]
}
