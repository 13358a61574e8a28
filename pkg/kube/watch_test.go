package kube_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// hearing is a handler that hands on what it is called with as text: "put: NAME
// MAP", "anew: NAME MAP" for another UID, and "gone: NAME"; and apart from that,
// "well", "failing: ERROR" and "limited: ERROR".
type hearing struct{ heard, state chan string }

func hear() *hearing {
	return &hearing{heard: make(chan string, 10_000), state: make(chan string, 10_000)}
}

func (h *hearing) Put(before, now *kube.Secret) {
	word := "put: "
	if before != nil && before.UID != now.UID {
		word = "anew: "
	}
	h.heard <- word + now.Name + " " + mapOf(now)
}

func (h *hearing) Gone(_, name string) { h.heard <- "gone: " + name }

func (h *hearing) Report(err error) {
	if err != nil {
		h.state <- "failing: " + err.Error()
	} else {
		h.state <- "well"
	}
}

func (h *hearing) Remark(err error) { h.state <- "limited: " + err.Error() }

// mapOf returns the text of a Secret's map, "" without one.
func mapOf(s *kube.Secret) string {
	text, _ := s.ConjurMap()
	return text
}

// noting is a handler that notes what is there, and what is gone.
type noting[T any] struct {
	put  func(T)
	gone func(namespace, name string)
}

func (n noting[T]) Put(_, now T)                { n.put(now) }
func (n noting[T]) Gone(namespace, name string) { n.gone(namespace, name) }
func (noting[T]) Report(error)                  {}
func (noting[T]) Remark(error)                  {}

func (h *hearing) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(t, h.heard, w); got != w {
			t.Fatalf("heard %q, want %q", got, w)
		}
	}
}

// await passes over other states.
func (h *hearing) await(t *testing.T, parts ...string) {
	t.Helper()
next:
	for {
		got := next(t, h.state, fmt.Sprint(parts))
		for _, part := range parts {
			if !strings.Contains(got, part) {
				continue next
			}
		}
		return
	}
}

func TestLabelledSecretsAreFollowed(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", map[string]string{"conjur-map": "one"}))
	create(t, api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	cluster.Bind(t, ns, "app", rules("secrets", "list", "watch"))
	h := hear()
	w := connect(t, cluster.Token(t, ns, "app")).WatchSecrets(kube.Selection{Namespace: ns}, nil, h)
	if w.Synced() {
		t.Error("synced before it ran")
	}
	running(t, w.Run)
	h.expect(t, "put: a one")
	proctest.Eventually(t, "synced", w.Synced)
	h.await(t, "well")

	create(t, api, managed("b", map[string]string{"conjur-map": "two"}))
	h.expect(t, "put: b two")
	update(t, api, "foreign", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "v"} })
	update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "three"} })
	h.expect(t, "put: a three")
	update(t, api, "b", func(s *corev1.Secret) { s.Labels = nil })
	h.expect(t, "gone: b")
	update(t, api, "foreign", func(s *corev1.Secret) { s.Labels = map[string]string{targets.ManagedLabel: "true"} })
	h.expect(t, "put: foreign ")
	remove(t, api, "a")
	h.expect(t, "gone: a")

	calls := cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app")))
	if len(calls) != 1 || calls[0].Verb != "watch" || !strings.Contains(calls[0].URI, "labelSelector=conjur.org%2Fmanaged-by-provider%3Dtrue") {
		t.Errorf("calls %+v, want one watch with the label", calls)
	}
}

func TestASecretIsFollowedByNameUnderARoleThatNamesIt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	rule := rules("secrets", "list", "watch")
	rule.ResourceNames = []string{"mine"}
	cluster.Bind(t, ns, "app", rule)
	c := connect(t, cluster.Token(t, ns, "app"))
	h := hear()
	running(t, c.WatchSecrets(kube.Selection{Namespace: ns, Name: "mine"}, nil, h).Run)
	h.expect(t, "gone: mine")
	create(t, api, managed("theirs", nil))
	create(t, api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	h.expect(t, "put: mine ")
	remove(t, api, "mine")
	h.expect(t, "gone: mine")

	theirs := hear()
	w := c.WatchSecrets(kube.Selection{Namespace: ns, Name: "theirs"}, nil, theirs)
	running(t, w.Run)
	theirs.await(t, "failing: ", "forbidden", "grant the verbs list and watch", "trying again every 10s")
	if w.Synced() || len(theirs.heard) > 0 {
		t.Error("something is said to be known of what may not be read")
	}
}

func TestTheLabelledSecretsOfAllNamespacesAreFollowed(t *testing.T) {
	mine, other := cluster.Namespace(t), cluster.Namespace(t)
	create(t, secrets(t, mine), managed("a", nil))
	heard := make(chan string, 10_000)
	note := func(word, namespace, name string) {
		if namespace == mine || namespace == other { // other tests left some too
			heard <- word + namespace + "/" + name
		}
	}
	running(t, connect(t, "").WatchSecrets(kube.Selection{}, nil, noting[*kube.Secret]{
		put:  func(s *kube.Secret) { note("", s.Namespace, s.Name) },
		gone: func(namespace, name string) { note("gone ", namespace, name) },
	}).Run)
	expect := func(want string) {
		t.Helper()
		if got := next(t, heard, want); got != want {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	expect(mine + "/a")
	create(t, secrets(t, other), managed("a", nil))
	expect(other + "/a")
	remove(t, secrets(t, mine), "a")
	expect("gone " + mine + "/a")
}

// Each of these rights alone does, and hears of everything by looks, until the
// right to watch is granted.
func TestWithoutTheRightToWatchThereAreLooks(t *testing.T) {
	for verb, name := range map[string]string{"list": "", "get": "a"} {
		t.Run(verb, func(t *testing.T) {
			ns := cluster.Namespace(t)
			api := secrets(t, ns)
			create(t, api, managed("a", map[string]string{"conjur-map": "one"}))
			cluster.Bind(t, ns, "app", rules("secrets", verb))
			h := hear()
			w := connect(t, cluster.Token(t, ns, "app")).WatchSecrets(kube.Selection{Namespace: ns, Name: name, Interval: 20 * time.Millisecond}, nil, h)
			running(t, w.Run)
			h.expect(t, "put: a one")
			h.await(t, "limited: ", "forbidden", "grant the verbs list and watch", "reading it every 20ms")
			proctest.Eventually(t, "synced", w.Synced)
			update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "two"} })
			h.expect(t, "put: a two")
			remove(t, api, "a")
			h.expect(t, "gone: a")
			create(t, api, managed("a", nil))
			h.expect(t, "put: a ")

			revoke := cluster.Bind(t, ns, "app", rules("secrets", "list", "watch"))
			h.await(t, "well")
			update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "three"} })
			h.expect(t, "put: a three")
			if !w.Live() {
				t.Error("what is watched is not live")
			}
			revoke()
			cluster.StopAPIServer(t) // a watch that stands is not taken away with the right
			cluster.StartAPIServer(t)
			h.await(t, "limited: ", "forbidden")
			update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "four"} })
			h.expect(t, "put: a four")
			if w.Live() {
				t.Error("what is looked at is live")
			}
		})
	}
}

func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	create(t, secrets(t, ns), managed("a", nil))
	h := hear()
	w := connect(t, cluster.Token(t, ns, "app")).WatchSecrets(kube.Selection{Namespace: ns, Interval: 20 * time.Millisecond}, nil, h)
	running(t, w.Run)
	h.await(t, "failing: ", "forbidden", "trying again every 20ms")
	revoke := cluster.Bind(t, ns, "app", rules("secrets", "list"))
	h.await(t, "limited: ", "forbidden")
	h.expect(t, "put: a ")
	revoke()
	h.await(t, "failing: ", "forbidden")
	create(t, secrets(t, ns), managed("b", nil))
	cluster.Bind(t, ns, "app", rules("secrets", "list", "watch"))
	h.await(t, "well")
	h.expect(t, "put: b ") // and nothing was said to be gone meanwhile
}

// Where not all namespaces may be read, those that may be are.
func TestEachNamespaceIsReadThatMayBe(t *testing.T) {
	t.Parallel()
	mine, other, closed := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	for _, ns := range []string{mine, other, closed} {
		create(t, secrets(t, ns), managed("in-"+ns, nil))
	}
	app := kubetest.UserName(mine, "app")
	token := cluster.Token(t, mine, "app")
	cluster.Bind(t, mine, "app", rules("secrets", "list"))
	h := hear()
	w := connect(t, token).WatchSecrets(kube.Selection{Known: func() []string { return []string{mine, closed} }, Interval: 20 * time.Millisecond}, nil, h)
	running(t, w.Run)
	h.expect(t, "put: in-"+mine+" ")
	h.await(t, "failing: ", "only these namespaces are known: "+mine+", "+closed, "1 of 2 namespaces are not served", "grant the verbs list and watch")
	create(t, secrets(t, mine), managed("b", nil))
	h.expect(t, "put: b ")
	remove(t, secrets(t, mine), "b")
	h.expect(t, "gone: b")
	for _, c := range cluster.Calls(t, kubetest.ByUser(app)) {
		if c.Namespace == other {
			t.Fatalf("call %+v to a namespace that is not known", c)
		}
	}
}

// The informer itself would say nothing of an API server that is away.
func TestAWatchGoesOnWhenTheAPIServerIsBack(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", nil))
	h := hear()
	w := connect(t, "").WatchSecrets(kube.Selection{Namespace: ns}, nil, h)
	running(t, w.Run)
	h.await(t, "well")
	h.expect(t, "put: a ")
	cluster.StopAPIServer(t)
	select {
	case got := <-h.state:
		// A request that the end of the API server cuts off is closed, a later one refused.
		if !strings.Contains(got, "failing: ") || !strings.Contains(got, "refused") && !strings.Contains(got, "closed before an answer") {
			t.Errorf("state %q, want that the connection is refused or closed", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was said of the API server for 10 s")
	}
	cluster.StartAPIServer(t)
	update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "new"} })
	h.await(t, "well")
	h.expect(t, "put: a new")
}

// Nor would it stop for a while.
func TestAWatchStopsWhileTheAPIServerIsAway(t *testing.T) {
	ns := cluster.Namespace(t)
	c := connect(t, "")
	begin := func() (h *hearing, stop func()) {
		h = hear()
		return h, running(t, c.WatchSecrets(kube.Selection{Namespace: ns}, nil, h).Run)
	}
	soon := func(how string, stop func()) {
		t.Helper()
		begin := time.Now()
		stop()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("stopping took %v while the API server %s", took, how)
		}
	}
	h, stop := begin()
	h.await(t, "well")
	cluster.StopAPIServer(t)
	h.await(t, "refused")
	soon("refused a watch", stop)
	h, stop = begin()
	h.await(t, "refused")
	h.await(t, "refused")
	soon("refused a list", stop)
	cluster.StartAPIServer(t)

	h, stop = begin()
	h.await(t, "well")
	cluster.PauseAPIServer(t)
	soon("was silent in a watch", stop)
	_, stop = begin()
	soon("was silent from the begin", stop)
	cluster.ContinueAPIServer(t)
}

// Of what changes in ConfigMaps one hears once, whatever is selected, and only
// which there are is kept.
func TestConfigMapsAreFollowed(t *testing.T) {
	t.Parallel()
	for name, selected := range map[string]string{"one by its name": "templates", "all of a namespace": ""} {
		t.Run(name, func(t *testing.T) {
			ns := cluster.Namespace(t)
			c := connect(t, "")
			heard := make(chan string, 100)
			see := func(name types.NamespacedName, m *corev1.ConfigMap) { heard <- fmt.Sprint(name.Name, m.Data) }
			w := c.WatchConfigMaps(kube.Selection{Namespace: ns, Name: selected}, see, noting[*metav1.PartialObjectMetadata]{
				put:  func(*metav1.PartialObjectMetadata) {},
				gone: func(namespace, name string) { heard <- "gone " + namespace + "/" + name },
			})
			running(t, w.Run)
			expect := func(want string) {
				t.Helper()
				for got := ""; got != want; { // one event may be seen twice
					got = next(t, heard, want)
				}
			}
			proctest.Eventually(t, "live", w.Live)
			maps := c.Core.ConfigMaps(ns)
			for _, name := range []string{"other", "templates"} {
				m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "x"}}
				if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			expect("templatesmap[a:x]")
			proctest.Eventually(t, "it is stored", func() bool { _, there := w.Find(ns, "templates"); return there })
			if _, there := w.Find(ns, "other"); there != (selected == "") {
				t.Errorf("another one is stored: %v", there)
			}
			if err := maps.Delete(t.Context(), "templates", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("gone " + ns + "/templates")
			if _, there := w.Find(ns, "templates"); there {
				t.Error("it is still stored")
			}
			if _, err := c.ConfigMap(t.Context(), ns, "templates"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "templates") {
				t.Errorf("error %v, want that it is not found", err)
			}
		})
	}
}

// A namespace's definitions beyond what they may have together are dropped as
// they come, also those that are there at first.
func TestDefinitionsBeyondTheRoomAreDropped(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	c := connect(t, "")
	api := secrets(t, ns)
	conjurMap := strings.Repeat("x", 1000)
	for i := range 5 {
		create(t, api, managed(fmt.Sprint("s", i), map[string]string{"conjur-map": conjurMap}))
	}
	h := hear()
	w := c.WatchSecrets(kube.Selection{Namespace: ns, Definitions: 2500}, nil, h)
	running(t, w.Run)
	overBudget := func() (n int) {
		for _, s := range w.Stored() {
			size, overBudget := s.Dropped()
			if text, _ := s.ConjurMap(); overBudget != (text == "") || overBudget && size != 1000 {
				t.Errorf("%+v", s)
			}
			if overBudget {
				n++
			}
		}
		return n
	}
	proctest.Eventually(t, "all are there", func() bool { return len(w.Stored()) == 5 })
	if n := overBudget(); n != 3 {
		t.Fatalf("%d of 5 are dropped", n)
	}
	for _, s := range w.Stored() {
		if _, overBudget := s.Dropped(); !overBudget {
			remove(t, api, s.Name)
		}
	}
	proctest.Eventually(t, "two are gone", func() bool { return len(w.Stored()) == 3 })
	create(t, api, managed("more", map[string]string{"conjur-map": conjurMap}))
	proctest.Eventually(t, "one more", func() bool { s, there := w.Find(ns, "more"); return there && s.Map.Text != "" })
}
