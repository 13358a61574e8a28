package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPIServerAwayAndBack(t *testing.T) {
	w := newWorld(t)
	w.variables("a", "b")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.value["a"]})

	plane.StopAPIServer(t)
	w.renew("a")
	eventually(t, "a word about the API server", func() bool { return strings.Contains(p.Log(), "connection refused") })
	w.polls(3)
	eventually(t, "the end of the term as leader, which cannot be renewed", func() bool {
		_, metrics := w.get("/metrics")
		return strings.Contains(metrics, "syncer_leader 0")
	})
	plane.StartAPIServer(t)

	w.awaitData("db", map[string]string{"a": w.value["a"]})
	w.secret("new", map[string]string{"b": "b"}) // the watch is back too
	w.awaitData("new", map[string]string{"b": w.value["b"]})
	p.Stop()
}

func TestPoisonousSecretHarmsNoOther(t *testing.T) {
	w := newWorld(t)
	const sound = 49
	var ids []string
	for i := range sound + 1 {
		ids = append(ids, fmt.Sprintf("app/v%02d", i))
	}
	w.variables(ids...)
	p := w.start()
	w.secret("poison", map[string]string{"good": ids[sound], strings.Repeat("k", 1500): ids[0]}, func(s *corev1.Secret) {
		s.Data["conjur-map"] = append(s.Data["conjur-map"], "bad: 17\n"...)
		s.Annotations["conjur.org/conjur-secrets.loop"] = "- x: " + ids[0] + "\n"
		s.Annotations["conjur.org/secret-file-template.loop"] = "{{range 3000000000}}{{end}}"
	})
	for i := range sound {
		w.secret(fmt.Sprintf("sound%02d", i), map[string]string{"v": ids[i]})
	}
	for i := range sound {
		w.awaitData(fmt.Sprintf("sound%02d", i), map[string]string{"v": w.value[ids[i]]})
	}
	w.awaitData("poison", map[string]string{"good": w.value[ids[sound]]})
	eventually(t, "Events that name the faulty entries", func() bool {
		told := strings.Join(append(w.events("poison", "InvalidDefinition"), w.events("poison", "SyncFailed")...), "\n")
		return strings.Contains(told, `"bad"`) && strings.Contains(told, "kkk") && strings.Contains(told, "loop")
	})
	p.Stop()
}

func TestNamespaceWithoutRightsStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.variables("a")
	foreign := plane.Namespace(t)
	w.env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + foreign
	p := w.start()
	w.secret("db", map[string]string{"a": "a"})
	w.awaitData("db", map[string]string{"a": w.value["a"]})
	eventually(t, "a word about the namespace", func() bool { return strings.Contains(p.Log(), foreign) })
	p.Stop()
}

func TestLeaderKilled(t *testing.T) {
	w := newWorld(t)
	w.settings = append(w.settings, "leaderElection: {leaseDuration: 3s}")
	w.variables("a")
	w.secret("db", map[string]string{"a": "a"})
	first := w.start()
	w.awaitData("db", map[string]string{"a": w.value["a"]})
	w.moveAddress()
	second := w.start()
	eventually(t, "the second to see the leader", func() bool { return strings.Contains(second.Log(), "Leader") })

	first.Signal(os.Kill)
	w.renew("a")
	w.awaitData("db", map[string]string{"a": w.value["a"]})
	second.Stop()
	lease, err := w.leases().Get(t.Context(), "syncer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("after its end the leader still holds the lease: %s", *holder)
	}
}
