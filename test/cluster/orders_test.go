package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// label gives a Secret the label, or takes it away for "".
func (w *world) label(name, value string) {
	w.Helper()
	w.edit(name, func(s *corev1.Secret) {
		s.Labels = map[string]string{"conjur.org/managed-by-provider": value}
		if value == "" {
			s.Labels = nil
		}
	})
}

// TestLabelComesAndGoes: a Secret that loses it keeps what it holds and is left
// alone, until it has it again.
func TestLabelComesAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b", "beat")
	w.secret("beat", map[string]string{"beat": "beat"})
	p := w.start()
	// What comes after is in Conjur and in the cluster when the poll after it,
	// and the watch, have brought it.
	settle := func() {
		t.Helper()
		w.awaitData("beat", map[string]string{"beat": w.Renew("beat")})
		w.polls(2)
	}
	w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) { s.Labels = nil })
	settle()
	if w.read("db").Data["a"] != nil {
		t.Error("a Secret without the label was filled")
	}
	w.label("db", "true")
	old := w.Value["a"]
	w.awaitData("db", map[string]string{"a": old})
	for _, value := range []string{"", "false"} {
		w.label("db", value)
		settle()
		w.Renew("a")
		settle()
		w.awaitData("db", map[string]string{"a": old})
		if _, metrics := w.get("/metrics"); strings.Contains(metrics, w.namespace+"/db") {
			t.Error("there are metrics of a Secret that is left alone")
		}
	}
	w.edit("db", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("b: b\n") })
	w.label("db", "true")
	w.awaitData("db", map[string]string{"b": w.Value["b"], "a": ""})
	p.Stop()
}

// TestSecretWithoutAMapIsToldOf: whoever labels it, and looks at it.
func TestSecretWithoutAMapIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	p := w.start()
	w.secret("db", nil, func(s *corev1.Secret) { s.Data = map[string][]byte{"conjurmap": []byte("a: a\n")} })
	eventually(t, "an Event about the map that is missing", func() bool {
		return strings.Contains(strings.Join(w.events("db", "InvalidDefinition"), "\n"), "neither a map nor a group")
	})
	w.edit("db", func(s *corev1.Secret) { s.Data = map[string][]byte{"conjur-map": []byte("a: a\n")} })
	w.awaitData("db", map[string]string{"a": w.Value["a"]})

	w.edit("db", func(s *corev1.Secret) { delete(s.Data, "conjur-map") }) // is proof of nothing
	eventually(t, "another Event", func() bool { return w.count("db", "InvalidDefinition") == 2 })
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.edit("db", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("{}\n") })
	w.awaitData("db", map[string]string{"a": ""})
	p.Stop()
}

// count is how often something with a reason was told of a Secret.
func (w *world) count(name, reason string) (n int32) {
	w.Helper()
	list, err := plane.Core.Events(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			n += e.Count
		}
	}
	return n
}
