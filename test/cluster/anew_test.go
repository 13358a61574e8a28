package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOldDefinitionIsNotUsedForASecretMadeAnew: not even while nothing is known
// of the new one.
func TestOldDefinitionIsNotUsedForASecretMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b")
	g := w.gated()
	p := w.start()
	w.secret("db", map[string]string{"key": "a"})
	w.awaitData("db", map[string]string{"key": w.Value["a"]})

	g.shut()
	w.remake("db", map[string]string{"key": "b"})
	w.Renew("a") // syncs it by its earlier definition
	eventually(t, "a word about the new Secret", func() bool { return strings.Contains(p.Log(), "created again") })
	if s := w.read("db"); s.Data["key"] != nil {
		t.Error("the Secret was filled as another one was defined")
	}
	g.open()
	w.awaitData("db", map[string]string{"key": w.Value["b"]})
	p.Stop()
}

// TestWorkloadIsRestartedForOtherDataOnly: deleting and recreating a Secret restarts its
// workload only if the data differ.
func TestWorkloadIsRestartedForOtherDataOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "restarts: {quietPeriod: 1s}")
	w.Variables("a", "b")
	deployments := w.deployment("shop")
	noted := func(name string) string {
		d, err := deployments.Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Annotations["conjur.org/secret-revision."+name]
	}
	uses := func(s *corev1.Secret) { s.Annotations["conjur.org/restart-workloads"] = "deployment/shop" }
	w.secret("db", map[string]string{"key": "a"}, uses)
	w.secret("mark", map[string]string{"key": "b"}, uses)
	p := w.start()
	w.awaitData("db", map[string]string{"key": w.Value["a"]})
	w.awaitData("mark", map[string]string{"key": w.Value["b"]})

	// The restart for the one Secret comes after it was looked at the other.
	w.remake("db", map[string]string{"key": "a"}, uses)
	w.awaitData("db", map[string]string{"key": w.Value["a"]})
	w.Renew("b")
	eventually(t, "a restart for the other Secret", func() bool { return noted("mark") != "" })
	if revision := noted("db"); revision != "" {
		t.Error("the data are as before, and the workload was restarted for them")
	}

	w.Renew("a")
	w.remake("db", map[string]string{"key": "a"}, uses)
	w.awaitData("db", map[string]string{"key": w.Value["a"]})
	eventually(t, "a restart for the new data", func() bool { return noted("db") != "" })
	before := noted("db")
	eventually(t, "quiet", func() bool { return time.Since(w.revised("db")) > 2*time.Second })

	w.remake("db", map[string]string{"key": "a"}, uses)
	w.awaitData("db", map[string]string{"key": w.Value["a"]})
	other := noted("mark")
	w.Renew("b")
	eventually(t, "another restart for the other Secret", func() bool { return noted("mark") != other })
	if noted("db") != before {
		t.Error("the data are as before, and the workload was restarted for them again")
	}
	p.Stop()
}

// revised is when the data of a Secret have changed last.
func (w *world) revised(name string) time.Time {
	w.Helper()
	at, err := time.Parse(time.RFC3339, w.read(name).Annotations["conjur.org/secret-revised"])
	if err != nil {
		w.Fatal(err)
	}
	return at
}
