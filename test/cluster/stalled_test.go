package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/kubetest"
)

// stall is a network that, once armed, delivers nothing after the first write of a resource.
// When it is opened, it delivers everything, also requests that the sender has given up.
type stall struct {
	gate
	mu       sync.Mutex
	resource string         // whose next write begins the stall; "" once it has begun
	late     map[string]int // write that was held → status of its answer, 0 before that
}

// stalling makes all later processes use a network to the API server that can stall.
func (w *world) stalling() *stall {
	w.Helper()
	s := &stall{gate: gate{valve: newValve(), writes: newValve()}, late: map[string]int{}}
	w.Cleanup(w.through(func(proxy *httputil.ReverseProxy) http.Handler {
		proxy.ModifyResponse = func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") == "true" {
				r.Body = gatedBody{r.Body, &s.gate, r.Request}
			}
			s.answered(r)
			return nil
		}
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "true" {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				s.sent(r)
				ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
				defer cancel()
				r = r.WithContext(ctx)
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			<-s.passage()
			proxy.ServeHTTP(rw, r)
		})
	}))
	w.Cleanup(s.open)
	return s
}

// arm holds back the next write of a resource, and everything after it.
func (s *stall) arm(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resource = "/" + resource + "/"
}

func (s *stall) sent(r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource != "" && strings.Contains(r.URL.Path, s.resource) {
		s.resource = ""
		s.shut()
	}
	select {
	case <-s.passage():
	default:
		s.late[r.Method+" "+r.URL.Path] = 0
	}
}

func (s *stall) answered(r *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.late[r.Request.Method+" "+r.Request.URL.Path]; held {
		s.late[r.Request.Method+" "+r.Request.URL.Path] = r.StatusCode
	}
}

// held are the writes of a resource that were held, with the status of each.
func (s *stall) held(resource string) (all []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for write, status := range s.late {
		if strings.Contains(write, "/"+resource+"/") {
			all = append(all, status)
		}
	}
	return all
}

// TestAStalledLeaderWritesNothingLate: the network delivers a leader's requests only after
// its successor has written. They change nothing.
func TestAStalledLeaderWritesNothingLate(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"secrets", "deployments", "serviceaccounts"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.settings = append(w.settings, "leaderElection: {leaseDuration: 3s}", "restarts: {quietPeriod: 1s}")
			w.Variables("a", "registry")
			w.Server.Set("registry", dockerConfig)
			shop := w.deployment("shop")
			w.account("builder")
			w.account("runner")
			w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) { s.Annotations["conjur.org/restart-workloads"] = "deployment/shop" })
			w.pulls("pull", "builder")
			change := func(accounts string) {
				w.Renew("a")
				w.edit("pull", func(s *corev1.Secret) { s.Annotations["conjur.org/pull-secret-for"] = accounts })
			}
			restartedBy := func() string {
				d, err := shop.Get(t.Context(), "shop", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return d.Spec.Template.Annotations["conjur.org/secret-revision.db"]
			}
			changed := func(runner ...string) {
				t.Helper()
				w.awaitData("db", map[string]string{"a": w.Value["a"]})
				w.awaitPulls("runner", runner...)
				eventually(t, "the restart", func() bool { return restartedBy() == w.read("db").Annotations["conjur.org/secret-revision"] })
			}
			network := w.stalling()
			first := w.start()
			w.awaitData("db", map[string]string{"a": w.Value["a"]})
			w.awaitPulls("builder", "pull", "theirs")

			network.arm(resource)
			change("builder, runner")
			eventually(t, "a write that is held", func() bool { return len(network.held(resource)) > 0 })
			// Only now: a busy machine might have made it the leader before.
			w.as("successor", rights(t))
			w.moveAddress()
			second := w.start()
			changed("pull", "theirs")
			begin := time.Now() // what was on its way when the stall began has arrived
			change("builder")
			changed("theirs")
			state := func() string {
				accounts, err := plane.Core.ServiceAccounts(w.namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(accounts.Items)
				if err != nil {
					t.Fatal(err)
				}
				return w.revisions() + " " + restartedBy() + " " + string(text)
			}
			second.Stop()
			w.takeLease(time.Hour) // nobody leads from now on, however slow the machine is
			before := state()
			network.open()
			eventually(t, "the first to see who leads now", func() bool { return len(first.Lines("Standing by")) == 1 })
			eventually(t, "an answer to each write that was held", func() bool {
				for _, status := range network.held(resource) {
					if status == 0 {
						return false
					}
				}
				return true
			})
			for _, status := range network.held(resource) {
				if status != http.StatusConflict {
					t.Errorf("a write that was held: status %d, want a conflict", status)
				}
			}
			if now := state(); now != before {
				t.Errorf("a write landed late:\n%s\n%s", before, now)
			}
			for _, call := range plane.Calls(t, kubetest.ByUser(w.user()), kubetest.Since(begin), func(c kubetest.Call) bool {
				return c.Code < 300 && c.Verb != "get" && c.Verb != "list" && c.Verb != "watch" && c.Resource != "events" // which tell of what was
			}) {
				t.Errorf("a write too much: %+v", call)
			}
			first.Stop()
		})
	}
}
