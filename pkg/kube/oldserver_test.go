package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
)

// What a genuine API server cannot be made to do at will, or no longer does, is
// played here, in JSON.
func played(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, say func(format string, args ...any))) *kube.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, func(format string, args ...any) {
			_, _ = fmt.Fprintf(w, format+"\n", args...)
			w.(http.Flusher).Flush()
		})
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: x, context: {cluster: x}}]\ncurrent-context: x\n"
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Connect(kube.Config{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const (
	secretJSON   = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s","namespace":"n","uid":"u%[2]d","resourceVersion":"%[2]d"}}`
	addedJSON    = `{"type":"ADDED","object":` + secretJSON + `}`
	bookmarkJSON = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Secret","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	statusJSON   = `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"%s","reason":"%s","code":%d}`
)

// What was made anew meanwhile is an update, with another UID.
func TestAHistoryThatIsGoneIsReadAnew(t *testing.T) {
	t.Parallel()
	watches := 0
	c := played(t, func(_ http.ResponseWriter, r *http.Request, say func(string, ...any)) {
		watches++
		if watches == 1 {
			say(addedJSON, "a", 1)
			say(addedJSON, "b", 2)
			say(addedJSON, "same", 3)
			say(bookmarkJSON, 3)
			say(`{"type":"ERROR","object":`+statusJSON+`}`, "too old resource version", "Expired", 410)
			return
		}
		say(addedJSON, "same", 3)
		say(addedJSON, "a", 7)
		say(bookmarkJSON, 7)
		say(addedJSON, "c", 8)
		<-r.Context().Done()
	})
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
	var heard []string
	for range 6 {
		heard = append(heard, next(t, h.heard, "all"))
	}
	slices.Sort(heard[:3])
	if want := []string{"put: a ", "put: b ", "put: same ", "gone: b", "anew: a ", "put: c "}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	for len(h.state) > 0 {
		if state := <-h.state; state != "well" {
			t.Errorf("an ordinary end is a trouble: %s", state)
		}
	}
}

// A history may also be gone when a watch is opened again.
func TestAWatchOfAHistoryThatIsGoneIsReadAnew(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"Expired", "Gone"} {
		gone := false
		c := played(t, func(w http.ResponseWriter, r *http.Request, say func(string, ...any)) {
			switch {
			case r.URL.Query().Get("sendInitialEvents") == "": // a watch that goes on
				gone = true
				w.WriteHeader(http.StatusGone)
				say(statusJSON, "too old resource version", reason, http.StatusGone)
			case gone:
				say(addedJSON, "b", 7)
				say(bookmarkJSON, 7)
				<-r.Context().Done()
			default:
				say(addedJSON, "a", 3)
				say(bookmarkJSON, 3)
				say(bookmarkJSON, 3)
			}
		})
		h := hear()
		running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
		h.expect(t, "put: a ", "gone: a", "put: b ")
	}
}

func TestAnAPIServerThatDoesNotStreamListsIsAskedForOne(t *testing.T) {
	t.Parallel()
	c := played(t, func(w http.ResponseWriter, r *http.Request, say func(string, ...any)) {
		q := r.URL.Query()
		switch {
		case q.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			say(statusJSON, "sendInitialEvents is forbidden for watch", "Invalid", 422)
		case q.Get("watch") == "" && q.Get("continue") == "":
			say(`{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"5","continue":"more"},"items":[` + fmt.Sprintf(secretJSON, "a", 1) + `]}`)
		case q.Get("watch") == "":
			say(`{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"5"},"items":[` + fmt.Sprintf(secretJSON, "b", 2) + `]}`)
		default:
			say(addedJSON, "c", 6)
			<-r.Context().Done()
		}
	})
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
	h.expect(t, "put: a ", "put: b ", "put: c ")
	h.await(t, "well")
}

// The informer would repeat these by itself, say nothing, and not notice that
// it is to stop.
func TestAnAPIServerThatIsTooBusyIsReported(t *testing.T) {
	t.Parallel()
	c := played(t, func(w http.ResponseWriter, _ *http.Request, say func(string, ...any)) {
		w.WriteHeader(http.StatusTooManyRequests) // without Retry-After
		say(statusJSON, "too many requests", "TooManyRequests", 429)
	})
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
	h.await(t, "failing: ", "too many requests")
	h.await(t, "failing: ", "too many requests")
}

// The library would take this for a watch that stands and is empty.
func TestAGatewayThatClosesConnectionsIsReported(t *testing.T) {
	t.Parallel()
	c := played(t, func(http.ResponseWriter, *http.Request, func(string, ...any)) { panic(http.ErrAbortHandler) })
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
	for range 3 {
		if state := next(t, h.state, "a trouble"); !strings.Contains(state, "failing: ") {
			t.Errorf("state %q", state)
		}
	}
}

func TestAnObjectOfAnotherKindIsNoSecret(t *testing.T) {
	t.Parallel()
	c := played(t, func(_ http.ResponseWriter, r *http.Request, say func(string, ...any)) {
		say(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","resourceVersion":"1"}}}`)
		say(addedJSON, "a", 1)
		say(bookmarkJSON, 1)
		<-r.Context().Done()
	})
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: "n"}, nil, h).Run)
	h.expect(t, "put: a ")
}

// Five conflicts in a row end the attempts to set pull Secrets.
func TestConflictsOfPullSecretsAreRetried(t *testing.T) {
	for conflicts, want := range map[int]bool{0: true, 4: true, 5: false} {
		patches := 0
		c := played(t, func(w http.ResponseWriter, r *http.Request, say func(string, ...any)) {
			if r.Method == http.MethodPatch {
				if patches++; patches <= conflicts {
					w.WriteHeader(http.StatusConflict)
					say(statusJSON, "changed", "Conflict", http.StatusConflict)
					return
				}
			}
			say(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"builder","namespace":"n"}}`)
		})
		added, _, err := c.SetPullSecrets(t.Context(), "n", "builder", []string{"registry"}, func(string) bool { return false })
		if (err == nil) != want || want && !slices.Equal(added, []string{"registry"}) || patches != min(conflicts+1, 5) {
			t.Errorf("%d conflicts: added %q with %d patches, %v", conflicts, added, patches, err)
		}
	}
}

// A rollout is complete if the status is of the present generation, and all Pods are there.
func TestRolloutsAreOfTheirGeneration(t *testing.T) {
	status := `"spec":{%[3]s"selector":{"matchLabels":{"app":"web"}}},"status":{"observedGeneration":%[1]d,"replicas":%[2]d,"updatedReplicas":%[2]d,"availableReplicas":%[2]d,"updatedNumberScheduled":%[2]d,"desiredNumberScheduled":2,"numberAvailable":%[2]d}}`
	for kind, name := range map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"} {
		replicas := `"replicas":2,`
		if kind == "daemonset" {
			replicas = ""
		}
		for _, test := range []struct {
			observed, pods int
			complete       bool
		}{{4, 2, false}, {5, 1, false}, {5, 2, true}, {6, 2, true}} {
			c := played(t, func(_ http.ResponseWriter, _ *http.Request, say func(string, ...any)) {
				say(`{"apiVersion":"apps/v1","kind":"`+name+`","metadata":{"name":"web","namespace":"n","generation":5},`+status, test.observed, test.pods, replicas)
			})
			got, err := c.Rollout(t.Context(), targets.Workload{Namespace: "n", Kind: kind, Name: "web"})
			if err != nil || got.Complete != test.complete || got.Selector.String() != "app=web" {
				t.Errorf("%s %+v: %+v, %v", kind, test, got, err)
			}
		}
	}
}

// A new Event is one request, and a repeated one patches it.
func TestEventsCostOneRequestEach(t *testing.T) {
	methods := make(chan string, 10)
	c := played(t, func(_ http.ResponseWriter, r *http.Request, say func(string, ...any)) {
		methods <- r.Method
		say(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"n","resourceVersion":"1"}}`)
	})
	r := c.NewRecorder("syncer", make(reports, 10))
	stop := running(t, r.Run)
	for _, want := range []string{http.MethodPost, http.MethodPatch} {
		r.Event(kube.SecretReference("n", "db", "1"), corev1.EventTypeNormal, "Synced", "2 keys")
		if got := next(t, methods, "a request"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	stop()
	if len(methods) > 0 {
		t.Errorf("%d requests too many", len(methods))
	}
}
