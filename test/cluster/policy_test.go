package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/test/deploy"
)

// police puts the admission policy of a release with the values in force.
func (w *world) police(values string) {
	w.Helper()
	api := deploy.Connect(w.TB, plane.Config())
	for _, o := range (deploy.Release{Namespace: w.namespace, Values: values}).Objects(w.TB) {
		if !strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			continue
		}
		if _, err := api.Create(w.Context(), w.namespace, o, false); err != nil {
			w.Fatal(err)
		}
	}
	own, err := corev1client.NewForConfig(plane.ConfigFor(plane.Token(w, w.namespace, "syncer")))
	if err != nil {
		w.Fatal(err)
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	if _, err := plane.Core.Secrets(w.namespace).Create(w.Context(), foreign, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	eventually(w, "the policy is in force", func() bool {
		_, err := own.Secrets(w.namespace).Patch(w.Context(), "foreign", types.MergePatchType, []byte(`{"data":{"a":"eA=="}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
}

// remake deletes a Secret and makes it anew, as some deployment tools do.
func (w *world) remake(name string, conjurMap map[string]string, changes ...func(*corev1.Secret)) {
	w.Helper()
	if err := plane.Core.Secrets(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.secret(name, conjurMap, changes...)
}

// TestPolicyOfTheChartLetsAllWritesPass: those of each kind of change.
func TestPolicyOfTheChartLetsAllWritesPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.police(chartValues)
	w.Variables("kept", "shared", "revoked")
	p := w.start()
	w.secret("db", map[string]string{"kept": "kept", "revoked": "revoked"})
	w.awaitData("db", map[string]string{"kept": w.Value["kept"], "revoked": w.Value["revoked"]})
	kept := w.Renew("kept")
	w.awaitData("db", map[string]string{"kept": kept})
	w.Deny("revoked")
	w.awaitData("db", map[string]string{"kept": kept, "revoked": ""})

	w.secret("taken", map[string]string{"shared": "shared", "kept": "kept"}, func(s *corev1.Secret) {
		s.Data["shared"] = []byte(w.Value["shared"]) // owned by somebody else as well
		s.Data["kept"] = []byte("old")
	})
	w.awaitData("taken", map[string]string{"kept": kept})
	w.edit("taken", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("kept: kept\n") })
	w.awaitData("taken", map[string]string{"kept": kept, "shared": ""})

	w.remake("db", map[string]string{"kept": "kept"})
	w.awaitData("db", map[string]string{"kept": kept})
	kept = w.Renew("kept")
	w.awaitData("db", map[string]string{"kept": kept})
	p.Stop()
}

// TestPolicyOfTheChartLetsListedSecretsBeMade: and kept.
func TestPolicyOfTheChartLetsListedSecretsBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.police(createValues)
	w.grant(deploy.Release{Values: createValues}.Rules(t, "syncer"))
	w.Variables("a")
	w.settings = append(w.settings, "kubernetes: {secrets: [{name: made, create: true, map: {v: a}}]}")
	p := w.start()
	w.awaitData("made", map[string]string{"v": w.Value["a"]})
	w.Renew("a")
	w.awaitData("made", map[string]string{"v": w.Value["a"]})
	p.Stop()
}

// TestDenialOfAPolicyIsOvercome: what a policy of the cluster denies is told,
// and made good when the policy allows it, though nothing of the Secret changes.
func TestDenialOfAPolicyIsOvercome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.police(strings.Replace(createValues, "name: made", "name: other", 1)) // of a release for another Secret
	w.settings = append(w.settings, "retry: {intervalSeconds: 1}")
	w.Variables("a")
	p := w.start()
	w.secret("db", map[string]string{"a": "a"})
	eventually(t, "an Event about the policy", func() bool {
		return strings.Contains(strings.Join(w.events("db", "SyncFailed"), "\n"), "denied by ValidatingAdmissionPolicy")
	})
	w.unpolice()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	p.Stop()
}

// unpolice puts it out of force.
func (w *world) unpolice() {
	w.Helper()
	api := deploy.Connect(w.TB, plane.Config())
	for _, o := range (deploy.Release{Namespace: w.namespace, Values: createValues}).Objects(w.TB) {
		if o.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		if err := api.Delete(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}
