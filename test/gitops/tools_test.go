package gitops

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/secretsync/syncer/test/proctest"
)

// encoded is a value as it stands in data or stringData.
func encoded(field, value string) string {
	if field == "data" {
		return base64.StdEncoding.EncodeToString([]byte(value))
	}
	return value
}

// tool deploys the manifest of a Secret, which may exist already.
type tool struct {
	name   string
	deploy func(w *world, manifest string) error
	// manager is the field manager that the Event Contested names.
	manager string
	// conflict is part of the error if the manifest sets, in data, a key that Syncer
	// delivers; "" means that the tool overwrites it. In stringData, each tool does.
	conflict string
	// stays means that a key of stringData stays in the Secret after the manifest has
	// dropped it. Flux converts stringData to data.
	stays bool
	// replaces means that each deployment removes Syncer's keys and annotations for a moment.
	replaces bool
}

var tools = []tool{
	{name: "kubectl apply", deploy: kubectl("apply"), manager: "kubectl-client-side-apply", stays: true},
	{name: "kubectl apply --server-side", deploy: kubectl("apply", "--server-side"), manager: "kubectl", conflict: `conflict with "syncer"`, stays: true},
	{name: "kubectl apply --server-side --force-conflicts", deploy: kubectl("apply", "--server-side", "--force-conflicts"), manager: "kubectl", stays: true},
	{name: "kubectl replace", deploy: replace, manager: "kubectl-replace", replaces: true},
	{name: "Helm 3", deploy: helm("helm3"), manager: "helm", stays: true},
	{name: "Helm 3 --force", deploy: helm("helm3", "--force"), manager: "helm", replaces: true},
	{name: "Helm 4", deploy: helm("helm4"), manager: "helm", conflict: `conflict with "syncer"`, stays: true},
	{name: "Helm 4 --force-conflicts", deploy: helm("helm4", "--force-conflicts"), manager: "helm", stays: true},
	{name: "Flux", deploy: flux, manager: "kustomize-controller"},
}

func kubectl(args ...string) func(*world, string) error {
	return func(w *world, manifest string) error {
		_, err := w.run("kubectl", append(args, "--namespace", w.namespace, "--filename", w.write(manifest))...)
		return err
	}
}

// replace creates the Secret if there is none.
func replace(w *world, manifest string) error {
	if w.read() == nil {
		return kubectl("create")(w, manifest)
	}
	return kubectl("replace")(w, manifest)
}

// helm installs or upgrades the release "db".
func helm(program string, args ...string) func(*world, string) error {
	return func(w *world, manifest string) error {
		w.Helper()
		chart := filepath.Join(w.dir, "chart")
		w.must(os.MkdirAll(filepath.Join(chart, "templates"), 0o700))
		w.must(os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: db\nversion: 0.1.0\n"), 0o600))
		w.must(os.WriteFile(filepath.Join(chart, "templates", "secret.yaml"), []byte(manifest), 0o600))
		command := append([]string{"upgrade", "db", chart}, args...)
		if w.read() == nil {
			command = []string{"install", "db", chart}
		}
		_, err := w.run(program, command...)
		return err
	}
}

// resourceManager is Flux's, as the user who deploys.
func (w *world) resourceManager() *ssa.ResourceManager {
	w.Helper()
	return ssa.NewResourceManager(w.client(), nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
}

func (w *world) client() client.Client {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	w.must(err)
	c, err := client.New(config, client.Options{})
	w.must(err)
	return c
}

// object is a manifest as Flux and Argo CD hold it.
func (w *world) object(manifest string) *unstructured.Unstructured {
	w.Helper()
	object, err := utils.ReadObject(strings.NewReader(manifest))
	w.must(err)
	object.SetNamespace(w.namespace)
	return object
}

// flux does what kustomize-controller does with each object.
func flux(w *world, manifest string) error {
	w.Helper()
	objects := []*unstructured.Unstructured{w.object(manifest)}
	w.must(normalize.UnstructuredList(objects))
	_, err := w.resourceManager().ApplyAll(context.WithoutCancel(w.Context()), objects, ssa.DefaultApplyOptions())
	return err
}

// TestToolsBesideSyncer: what Syncer delivers stays, in each upgrade. If the manifest sets it
// too, the tool refuses or overwrites it, and Syncer corrects it and names the tool.
func TestToolsBesideSyncer(t *testing.T) {
	for _, tool := range tools {
		for _, field := range []string{"data", "stringData"} {
			t.Run(tool.name+" "+field, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.must(tool.deploy(w, manifest(field, map[string]string{"own": "one", "dropped": "x"})))
				before := w.await()
				testUpgrade(w, tool, field, before.Annotations["conjur.org/secret-revision"])
				testSetByBoth(w, tool, field)
			})
		}
	}
}

// testUpgrade changes one key of the manifest and drops another one. Then it deploys again.
func testUpgrade(w *world, tool tool, field, revision string) {
	w.Helper()
	upgraded := manifest(field, map[string]string{"own": "two"})
	w.must(tool.deploy(w, upgraded))
	after := w.read()
	if !tool.replaces && (string(after.Data["a"]) != w.Value["a"] || after.Annotations["conjur.org/secret-revision"] != revision) {
		w.Errorf("an upgrade changed what Syncer wrote: %v", after.Annotations)
	}
	if _, there := after.Data["dropped"]; string(after.Data["own"]) != "two" || there != (tool.stays && field == "stringData") {
		w.Errorf("the key that the manifest dropped is there: %t", there)
	}
	after = w.await()
	w.must(tool.deploy(w, upgraded))
	if now := w.read(); !tool.replaces && now.ResourceVersion != after.ResourceVersion {
		w.Error("the tool writes although the manifest is the same")
	}
	w.await()
	if events := w.contested(); len(events) > 0 && !tool.replaces {
		w.Errorf("without a contest, there are the Events %q", events)
	}
}

// testSetByBoth deploys a manifest with the key that Syncer delivers, and then without it.
func testSetByBoth(w *world, tool tool, field string) {
	w.Helper()
	before := w.read()
	err := tool.deploy(w, manifest(field, map[string]string{"own": "two", "a": "theirs"}))
	if field == "data" && tool.conflict != "" {
		if now := w.read(); err == nil || !strings.Contains(err.Error(), tool.conflict) || now.ResourceVersion != before.ResourceVersion {
			w.Errorf("the tool does not refuse: %v", err)
		}
		return
	}
	w.must(err)
	w.await()
	proctest.Eventually(w, "an Event that names the manager "+tool.manager, func() bool {
		for _, event := range w.contested() {
			if strings.Contains(event, "the field manager "+tool.manager+" changed a, ") || strings.Contains(event, "the field manager "+tool.manager+" changes a ") {
				return true
			}
		}
		return false
	})
	w.must(tool.deploy(w, manifest(field, map[string]string{"own": "two"})))
	if tool.replaces {
		w.await()
		return
	}
	proctest.Eventually(w, "the end of the contest", func() bool {
		before := w.await()
		w.must(tool.deploy(w, manifest(field, map[string]string{"own": "two"})))
		return w.read().ResourceVersion == before.ResourceVersion
	})
}
