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

// holding has requests for values answered late: what the server says at once
// is held back until release is called.
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

// pollRarely has changes in Conjur heard of by syncs alone.
func (w *world) pollRarely() { w.settings[0] = "refresh: {interval: 1h}" }

// TestForeignChangeDuringOurWriteIsMended: the watch tells of it while it is
// not known yet which version is our own.
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
	w.secret("later", map[string]string{"v": "b"}) // of which the watch tells after that
	eventually(t, "another one", func() bool { return g.withheld.Load() == 2 })
	w.awaitData("db", map[string]string{"v": "tampered"})
	g.writes.open()
	w.awaitData("db", map[string]string{"v": w.Value["a"]})
	p.Stop()
}

// TestSecretMadeAnewDuringItsSync is filled as the new one is defined. One that
// is to hold what it held keeps its revision, so that nothing is restarted.
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

// TestSecretMadeAnewDuringItsWrite: the answer about the former one comes after
// all that the watch tells of the new one.
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
			w.secret("later", map[string]string{"v": "c"}) // of which the watch tells after that
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

// TestIdentityChangesDuringASync: what the former identity was told is written
// no more, however late it comes.
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
