package gitops

import (
	"context"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A rollback changes only what the chart contains. An uninstallation deletes the Secret, and
// Syncer does not create it again.
func TestHelmRollsBackAndUninstalls(t *testing.T) {
	for _, program := range []string{"helm3", "helm4"} {
		for _, field := range []string{"data", "stringData"} {
			t.Run(program+" "+field, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				deploy := helm(program)
				w.must(deploy(w, manifest(field, map[string]string{"own": "one"})))
				first := w.await()
				w.must(deploy(w, manifest(field, map[string]string{"own": "two"})))
				w.Renew("a")
				w.await()
				_, err := w.run(program, "rollback", "db", "1")
				w.must(err)
				after := w.read()
				if string(after.Data["own"]) != "one" || string(after.Data["a"]) != w.Value["a"] || after.Annotations["conjur.org/secret-revision"] == first.Annotations["conjur.org/secret-revision"] {
					t.Errorf("after the rollback: own=%s, annotations %v", after.Data["own"], after.Annotations)
				}
				_, err = w.run(program, "uninstall", "db")
				w.must(err)
				w.Renew("a")
				w.must(deploy(w, manifest(field, map[string]string{"own": "three"})))
				if again := w.await(); again.UID == first.UID {
					t.Error("the Secret was not deleted")
				}
				if events := w.contested(); len(events) > 0 {
					t.Errorf("there are the Events %q", events)
				}
			})
		}
	}
}

// Helm 4 upgrades a release of Helm 3 as Helm 3 did, or server-side if told to. Syncer's keys
// stay. Only then a dropped key of stringData goes.
func TestHelm4TakesOverAReleaseOfHelm3(t *testing.T) {
	for _, serverSide := range []string{"auto", "true"} {
		t.Run(serverSide, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(helm("helm3")(w, manifest("stringData", map[string]string{"own": "one", "dropped": "x"})))
			before := w.await()
			w.must(helm("helm4", "--server-side="+serverSide)(w, manifest("stringData", map[string]string{"own": "two"})))
			after := w.read()
			if string(after.Data["own"]) != "two" || string(after.Data["a"]) != w.Value["a"] || after.Annotations["conjur.org/secret-revision"] != before.Annotations["conjur.org/secret-revision"] {
				t.Errorf("after the upgrade: own=%s, annotations %v", after.Data["own"], after.Annotations)
			}
			if _, stays := after.Data["dropped"]; stays != (serverSide == "auto") {
				t.Errorf("the dropped key stays: %t", stays)
			}
		})
	}
}

// kubectl makes the manager of a server-side apply the owner of all that was applied before,
// and so removes what the new manifest lacks: here the label and the map, but no key of Syncer.
func TestKubectlServerSideTakesTheOwnershipOfAClientSideApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(kubectl("apply")(w, manifest("data", map[string]string{})))
	w.await()
	w.must(kubectl("apply", "--server-side", "--field-manager=ci")(w, "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {own: x}\n"))
	after := w.read()
	if _, there := after.Data["conjur-map"]; there || len(after.Labels) > 0 {
		t.Errorf("the label or the map stays: %v", after.Labels)
	}
	if string(after.Data["a"]) != w.Value["a"] {
		t.Error("the key of Syncer is gone")
	}
}

// Flux and Argo CD find no difference in what Syncer writes. They find one if the manifest
// sets a key that Syncer delivers.
func TestDriftDetection(t *testing.T) {
	t.Run("Flux", func(t *testing.T) {
		t.Parallel()
		testDrift(t, flux, func(w *world, object *unstructured.Unstructured) (bool, error) {
			w.must(normalize.UnstructuredList([]*unstructured.Unstructured{object}))
			entry, _, _, err := w.resourceManager().Diff(w.Context(), object, ssa.DefaultDiffOptions())
			return err == nil && entry.Action != ssa.UnchangedAction, err
		})
	})
	argo := func(options ...diff.Option) func(w *world, object *unstructured.Unstructured) (bool, error) {
		return func(w *world, object *unstructured.Unstructured) (bool, error) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			w.must(w.client().Get(w.Context(), client.ObjectKeyFromObject(object), live))
			result, err := diff.Diff(object, live, append(options, diff.WithServerSideDryRunner(dryRunner{w}), diff.WithManager("argocd-controller"))...)
			return err == nil && result.Modified, err
		}
	}
	t.Run("Argo CD", func(t *testing.T) {
		t.Parallel()
		testDrift(t, kubectl("apply"), argo())
	})
	t.Run("Argo CD server-side", func(t *testing.T) {
		t.Parallel()
		testDrift(t, kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"), argo(diff.WithServerSideDiff(true), diff.WithIgnoreMutationWebhook(false)))
	})
}

func testDrift(t *testing.T, deploy func(*world, string) error, differs func(*world, *unstructured.Unstructured) (bool, error)) {
	for _, field := range []string{"data", "stringData"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			text := manifest(field, map[string]string{"own": "one"})
			w.must(deploy(w, text))
			before := w.await()
			for range 20 {
				if is, err := differs(w, w.object(text)); is || err != nil {
					t.Fatalf("it differs: %t, %v", is, err)
				}
			}
			if now := w.read(); now.ResourceVersion != before.ResourceVersion {
				t.Error("the comparison wrote")
			}
			if is, err := differs(w, w.object(manifest(field, map[string]string{"own": "one", "a": "theirs"}))); !is || err != nil {
				t.Errorf("with a key of Syncer in the manifest, it differs: %t, %v", is, err)
			}
		})
	}
}

// dryRunner is what Argo CD asks for the result of a server-side apply.
type dryRunner struct{ w *world }

// Run implements diff.ServerSideDryRunner.
func (d dryRunner) Run(_ context.Context, object *unstructured.Unstructured, manager string) (string, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	return d.w.run("kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--output=json", "--show-managed-fields", "--field-manager="+manager, "--namespace="+d.w.namespace, "--filename="+d.w.write(string(text)))
}
