package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// holding delays the answers to requests for values until release is called.
type holding struct {
	held    atomic.Int64 // requests that were held
	passing atomic.Bool  // further requests are not held
	release func()
}

func (w *world) hold() *holding {
	h := &holding{}
	v := newValve()
	v.shut()
	h.release = v.open
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if h.passing.Load() || !strings.HasPrefix(r.URL.Path, "/secrets") {
				next.ServeHTTP(rw, r)
				return
			}
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			h.held.Add(1)
			select {
			case <-v.passage():
			case <-r.Context().Done():
				return
			}
			maps.Copy(rw.Header(), answer.Header())
			rw.WriteHeader(answer.Code)
			_, _ = rw.Write(answer.Body.Bytes())
		})
	})
	return h
}

func (h *holding) await(w *world) {
	w.Helper()
	eventually(w, "a request for values", func() bool { return h.held.Load() > 0 })
}

// pollRarely disables polls in effect, so that only syncs notice changes in Conjur.
func (w *world) pollRarely() { w.settings[0] = "refresh: {interval: 1h}" }

// TestForeignChangeDuringOurWriteIsMended: the watch reports the change before Syncer knows
// the version that its own write created.
func TestForeignChangeDuringOurWriteIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pollRarely()
	w.Variables("a", "b")
	g := w.gated()
	g.writes.shut()
	p := w.start()
	w.secret("db", map[string]string{"v": "a"})
	eventually(t, "a write without an answer", func() bool { return g.withheld.Load() == 1 })
	w.edit("db", func(s *corev1.Secret) { s.Data["v"] = []byte("tampered") })
	w.secret("later", map[string]string{"v": "b"}) // the watch reports this one after that
	eventually(t, "another one", func() bool { return g.withheld.Load() == 2 })
	w.awaitData("db", map[string]string{"v": "tampered"})
	g.writes.open()
	w.awaitData("db", map[string]string{"v": w.Value["a"]})
	p.Stop()
}

// TestSecretMadeAnewDuringItsSync: the recreated Secret is filled by its new definition. If
// its data are the same, it keeps its revision, so that nothing restarts.
func TestSecretMadeAnewDuringItsSync(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"same": "a", "other": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pollRarely()
			w.Variables("a", "b")
			first := w.secret("db", map[string]string{"of-a": "a"})
			p := w.start()
			w.awaitData("db", map[string]string{"of-a": w.Value["a"]})
			revision := w.read("db").Annotations["conjur.org/secret-revision"]

			h := w.hold()
			w.edit("db", func(s *corev1.Secret) { s.Data["of-a"] = []byte("tampered") })
			h.await(w)
			w.remake("db", map[string]string{"of-" + id: id})
			history := w.history("db")
			h.release()
			want := map[string]string{"of-a": "", "of-b": ""}
			want["of-"+id] = w.Value[id]
			w.awaitData("db", want)
			s := w.read("db")
			if s.UID == first.UID {
				t.Error("the Secret was not made anew")
			}
			for _, before := range history(s.ResourceVersion) {
				if before.Data["of-a"] != nil && name == "other" {
					t.Error("the Secret was filled as another one was defined")
				}
			}
			if now := s.Annotations["conjur.org/secret-revision"]; (now == revision) != (name == "same") {
				t.Errorf("the revision was %q, and is %q", revision, now)
			}
			p.Stop()
		})
	}
}

// TestSecretMadeAnewDuringItsWrite: the answer to the write of the deleted Secret arrives
// after all events of the new one.
func TestSecretMadeAnewDuringItsWrite(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"same": "a", "other": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pollRarely()
			w.Variables("a", "b", "c")
			g := w.gated()
			g.writes.shut()
			p := w.start()
			w.secret("db", map[string]string{"of-a": "a"})
			eventually(t, "a write without an answer", func() bool { return g.withheld.Load() == 1 })
			w.remake("db", map[string]string{"of-" + id: id})
			w.secret("later", map[string]string{"v": "c"}) // the watch reports this one after that
			eventually(t, "another one", func() bool { return g.withheld.Load() == 2 })
			if s := w.read("db"); s.Data["of-a"] != nil || s.Data["of-b"] != nil {
				t.Error("the new Secret was filled by the write to the former one")
			}
			g.writes.open()
			want := map[string]string{"of-a": "", "of-b": ""}
			want["of-"+id] = w.Value[id]
			w.awaitData("db", want)
			p.Stop()
		})
	}
}

// history returns a function that returns the states of a Secret from now on
// up to a version.
func (w *world) history(name string) func(version string) []*corev1.Secret {
	w.Helper()
	events, err := plane.Core.Secrets(w.namespace).Watch(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	return func(version string) (states []*corev1.Secret) {
		w.Helper()
		patient := time.After(proctest.Patience)
		for {
			select {
			case event := <-events.ResultChan():
				s, ok := event.Object.(*corev1.Secret)
				if !ok {
					w.Fatalf("the watch broke: %+v", event)
				}
				if states = append(states, s); s.ResourceVersion == version {
					return states
				}
			case <-patient:
				w.Fatalf("the watch does not tell of version %s of the Secret %s", version, name)
			}
		}
	}
}

// TestIdentityChangesDuringASync: an answer to the former identity is never written, however
// late it arrives.
func TestIdentityChangesDuringASync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("v")
	w.Server.Policy("- !host other\n- !permit {role: !host other, privileges: [read, execute], resource: !variable v}\n")
	w.secret("db", map[string]string{"v": "v"})
	h := w.hold()
	p := w.start()
	h.await(w)
	h.passing.Store(true)
	value := w.Renew("v")
	w.settings = append(w.settings, fmt.Sprintf("identities: [%s]", w.identity("other", w.namespace)))
	w.configure()
	w.awaitData("db", map[string]string{"v": value})
	h.release()
	w.polls(3)
	w.awaitData("db", map[string]string{"v": value})
	writes := plane.Calls(t, kubetest.ByUser(w.user()), func(c kubetest.Call) bool { return c.Verb == "patch" && c.Resource == "secrets" })
	if len(writes) != 1 {
		t.Errorf("the Secret was written %d times, want once", len(writes))
	}
	p.Stop()
}
