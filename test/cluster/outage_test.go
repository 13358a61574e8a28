package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPIServerAwayAndBack(t *testing.T) {
	w := newWorld(t)
	w.Variables("a", "b")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})

	before := w.Server.Counts().Data
	plane.StopAPIServer(t)
	w.Renew("a")
	eventually(t, "a word about the API server", func() bool { return strings.Contains(p.Log(), "connection refused") })
	eventually(t, "three polls meanwhile", func() bool { return w.Server.Counts().Data >= before+3 })
	eventually(t, "the end of the term as leader, which cannot be renewed", func() bool {
		_, metrics := w.get("/metrics")
		return strings.Contains(metrics, "syncer_leader 0")
	})
	plane.StartAPIServer(t)

	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.secret("new", map[string]string{"b": "b"}) // the watch is back too
	w.awaitData("new", map[string]string{"b": w.Value["b"]})
	p.Stop()
}

// TestAPIServerAwayIsSaidAndStopsNothing: by the tenth poll, as polls come each
// second, the log tells of it; and a process that is told to stop does so as
// soon as one that can reach the API server.
func TestAPIServerAwayIsSaidAndStopsNothing(t *testing.T) {
	const slack = 5 * time.Second // for a machine with too much to do; waiting for the API server takes longer
	for _, mode := range []string{"standalone", "sidecar"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.Variables("a")
			w.secret("db", map[string]string{"a": "a"})
			if w.Env["CONTAINER_MODE"] = mode; mode == "sidecar" {
				delete(w.Env, "NAMESPACE_ALLOWLIST")
				w.Env["K8S_SECRETS"] = "db"
			}
			var took [2]time.Duration
			for i, away := range []bool{false, true} {
				p := w.start()
				eventually(t, "ready", w.ready)
				w.polls(1)
				if away {
					plane.StopAPIServer(t)
					begin := w.Server.Counts().Data
					// That it was cut off, if it was opened just then, or that it is refused.
					eventually(t, "a word about the watch", func() bool { return len(p.Lines("Failing", "watch of secrets", "connect")) > 0 })
					if polls := w.Server.Counts().Data - begin; polls > 10 {
						t.Errorf("the log tells of the API server after %d polls", polls)
					}
				}
				told := time.Now()
				p.Stop()
				took[i] = time.Since(told)
			}
			t.Logf("stopped within %v with the API server, and %v without", took[0], took[1])
			if took[1] > took[0]+slack {
				t.Errorf("without the API server it took %v to stop, with it %v", took[1], took[0])
			}
		})
	}
}

func TestPoisonousSecretHarmsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const sound = 49
	var ids []string
	for i := range sound + 1 {
		ids = append(ids, fmt.Sprintf("app/v%02d", i))
	}
	w.Variables(ids...)
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
		w.awaitData(fmt.Sprintf("sound%02d", i), map[string]string{"v": w.Value[ids[i]]})
	}
	w.awaitData("poison", map[string]string{"good": w.Value[ids[sound]]})
	eventually(t, "Events that name the faulty entries", func() bool {
		told := strings.Join(append(w.events("poison", "InvalidDefinition"), w.events("poison", "SyncFailed")...), "\n")
		return strings.Contains(told, `"bad"`) && strings.Contains(told, "kkk") && strings.Contains(told, "loop")
	})
	p.Stop()
}

// TestLeaderKilled has the default duration of a Lease, because with a short one a busy
// API server may answer too late for the leader to free its Lease.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	first := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	second := w.standby()

	first.Signal(os.Kill)
	w.Renew("a")
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	second.Stop()
	lease, err := w.leases().Get(t.Context(), "syncer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("after its end the leader still holds the lease: %s", *holder)
	}
}

// TestTermLostAndWonAgain: another replica that led for a while and wrote
// nothing has left all as it was, and so does the next term.
func TestTermLostAndWonAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "leaderElection: {leaseDuration: 3s}")
	w.Variables("a", "b")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	leads := func(n string) bool {
		_, metrics := w.get("/metrics")
		return strings.Contains(metrics, "\nsyncer_leader "+n+"\n")
	}
	eventually(t, "the first term", func() bool { return leads("1") })
	before := w.read("db").ResourceVersion

	w.takeLease(3 * time.Second)
	eventually(t, "the end of the term", func() bool { return leads("0") })
	eventually(t, "the next term", func() bool { return leads("1") })
	w.polls(3)
	eventually(t, "ready", w.ready)
	if now := w.read("db").ResourceVersion; now != before {
		t.Error("the second term wrote what was there")
	}
	if n := len(w.events("db", "Synced")); n != 1 {
		t.Errorf("%d Events tell of a sync, want that of the first term", n)
	}
	w.awaitData("db", map[string]string{"a": w.Renew("a")})
	w.secret("new", map[string]string{"b": "b"})
	w.awaitData("new", map[string]string{"b": w.Value["b"]})
	p.Stop()
}
