package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/kubetest"
)

// hearing is a handler that hands on what it hears as text, and how the watch
// ended.
type hearing struct {
	heard chan string
	ended chan error
}

func hear() (*hearing, kube.Handler[kube.Source]) {
	h := &hearing{heard: make(chan string, 1000), ended: make(chan error, 1)}
	return h, kube.Handler[kube.Source]{
		Replace: func(all []kube.Source) {
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			slices.Sort(names)
			h.heard <- fmt.Sprint("all: ", strings.Join(names, " "))
		},
		Put:    func(s kube.Source) { h.heard <- "put: " + s.Name + " " + s.Map },
		Delete: func(_, name string) { h.heard <- "delete: " + name },
		Well:   func() { h.heard <- "well" },
	}
}

func (h *hearing) run(t *testing.T, w *kube.Watch[kube.Source]) (stop func()) {
	return running(t, func(ctx context.Context) { h.ended <- w.Run(ctx) })
}

func (h *hearing) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-h.heard:
			if got != w {
				t.Fatalf("heard %q, want %q", got, w)
			}
		case err := <-h.ended:
			t.Fatalf("the watch ended before %q: %v", w, err)
		case <-t.Context().Done():
		}
	}
}

func TestLabelledSecretsAreFollowed(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", map[string]string{"conjur-map": "one"}))
	create(t, api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	cluster.Bind(t, ns, "app", rules("secrets", "list", "watch"))
	c := connect(t, cluster.Token(t, ns, "app"))
	h, handler := hear()
	stop := h.run(t, c.WatchSecrets(ns, "", handler))
	h.expect(t, "all: a", "well")

	create(t, api, managed("b", map[string]string{"conjur-map": "two"}))
	h.expect(t, "put: b two")
	update(t, api, "foreign", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "v"} })
	update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "three"} })
	h.expect(t, "put: a three")
	update(t, api, "b", func(s *corev1.Secret) { s.Labels = nil })
	h.expect(t, "delete: b")
	update(t, api, "foreign", func(s *corev1.Secret) { s.Labels = map[string]string{kube.ManagedLabel: "true"} })
	h.expect(t, "put: foreign ")
	remove(t, api, "a")
	h.expect(t, "delete: a")

	stop()
	if err := next(t, h.ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want the context's error", err)
	}
	calls := cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app")))
	if len(calls) != 1 || calls[0].Verb != "watch" || !strings.Contains(calls[0].URI, "labelSelector=conjur.org%2Fmanaged-by-provider%3Dtrue") {
		t.Errorf("calls %+v, want one watch with the label", calls)
	}
}

func TestASecretIsFollowedByNameUnderARoleThatNamesIt(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	rule := rules("secrets", "list", "watch")
	rule.ResourceNames = []string{"mine"}
	cluster.Bind(t, ns, "app", rule)
	c := connect(t, cluster.Token(t, ns, "app"))
	h, handler := hear()
	h.run(t, c.WatchSecrets(ns, "mine", handler))
	h.expect(t, "all: ", "well")
	create(t, api, managed("theirs", nil))
	create(t, api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	h.expect(t, "put: mine ")
	remove(t, api, "mine")
	h.expect(t, "delete: mine")

	theirs, ignore := hear()
	theirs.run(t, c.WatchSecrets(ns, "theirs", ignore))
	if err := next(t, theirs.ended, "a refusal"); !apierrors.IsForbidden(err) {
		t.Errorf("the watch on another secret ended with %v", err)
	}
}

func TestTheLabelledSecretsOfAllNamespacesAreFollowed(t *testing.T) {
	mine, other := cluster.Namespace(t), cluster.Namespace(t)
	create(t, secrets(t, mine), managed("a", nil))
	heard := make(chan string, 1000)
	note := func(s kube.Source) {
		if s.Namespace == mine || s.Namespace == other { // other tests left some too
			heard <- s.Namespace + "/" + s.Name
		}
	}
	w := connect(t, "").WatchSecrets("", "", kube.Handler[kube.Source]{
		Replace: func(all []kube.Source) {
			for _, s := range all {
				note(s)
			}
		},
		Put: note, Delete: func(namespace, name string) { heard <- "gone " + namespace + "/" + name }, Well: func() {},
	})
	running(t, func(ctx context.Context) { _ = w.Run(ctx) })
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

// Without the right to watch, each try is a list; it never says that all is
// well.
func TestWithoutTheRightToWatchEachTryLists(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", map[string]string{"k": "v"}))
	cluster.Bind(t, ns, "app", rules("secrets", "list"))
	c := connect(t, cluster.Token(t, ns, "app"))
	h, handler := hear()
	w := c.WatchSecrets(ns, "", handler)
	for _, want := range []string{"all: a", "all: a b"} {
		if err := w.Run(t.Context()); !apierrors.IsForbidden(err) {
			t.Fatalf("ended with %v, want that watching is forbidden", err)
		}
		if got := next(t, h.heard, "a list"); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
		if want == "all: a" {
			create(t, api, managed("b", nil))
		}
	}
	if n := len(h.heard); n != 0 {
		t.Errorf("heard %q too", <-h.heard)
	}
}

func TestAWatchGoesOnWhenTheAPIServerIsBack(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", nil))
	create(t, api, managed("b", nil))
	c := connect(t, "")
	h, handler := hear()
	w := c.WatchSecrets(ns, "", handler)
	h.run(t, w)
	h.expect(t, "all: a b", "well")

	cluster.StopAPIServer(t)
	next(t, h.ended, "the end of the watch")
	h.run(t, w)
	err := next(t, h.ended, "the end of another try")
	cluster.StartAPIServer(t)
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ended with %v, want that the connection was refused", err)
	}
	remove(t, api, "b")
	update(t, api, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "new"} })
	create(t, api, managed("c", nil))
	h.run(t, w)
	h.expect(t, "all: a c", "well")
	create(t, api, managed("d", nil))
	h.expect(t, "put: d ")
}

// A stop must not wait for the library's own pauses.
func TestAWatchStopsWhileTheAPIServerIsSilent(t *testing.T) {
	ns := cluster.Namespace(t)
	c := connect(t, "")
	h, handler := hear()
	stop := h.run(t, c.WatchSecrets(ns, "", handler))
	h.expect(t, "all: ", "well")
	cluster.PauseAPIServer(t)
	defer cluster.ContinueAPIServer(t)
	stop()
	h, handler = hear()
	stop = h.run(t, c.WatchSecrets(ns, "", handler))
	stop()
	if err := next(t, h.ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want the context's error", err)
	}
}

func TestAConfigMapIsFollowed(t *testing.T) {
	ns := cluster.Namespace(t)
	c := connect(t, "")
	heard := make(chan string, 100)
	handler := kube.Handler[kube.Texts]{
		Replace: func(all []kube.Texts) { heard <- fmt.Sprint(all) },
		Put:     func(m kube.Texts) { heard <- fmt.Sprint(m) },
		Delete:  func(namespace, name string) { heard <- "delete " + namespace + "/" + name },
		Well:    func() { heard <- "well" },
	}
	wanted := func(key string) bool { return key == "a" || key == "b" }
	w := c.WatchConfigMap(ns, "templates", wanted, handler)
	running(t, func(ctx context.Context) { _ = w.Run(ctx) })
	expect := func(want string) {
		t.Helper()
		if got := next(t, heard, want); got != want {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	expect("[]")
	expect("well")
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "templates"}, Data: map[string]string{"a": "x", "c": "large"}}
	other := m.DeepCopy()
	other.Name = "other"
	maps := c.Core.ConfigMaps(ns)
	for _, m := range []*corev1.ConfigMap{other, m} {
		if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect(fmt.Sprintf("{%s templates map[a:x]}", ns))
	got, err := c.ConfigMap(t.Context(), ns, "templates", wanted)
	if err != nil || fmt.Sprint(got) != fmt.Sprintf("{%s templates map[a:x]}", ns) {
		t.Errorf("read %v, %v", got, err)
	}
	if err := maps.Delete(t.Context(), "templates", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("delete " + ns + "/templates")
	if _, err := c.ConfigMap(t.Context(), ns, "templates", wanted); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "templates") {
		t.Errorf("error %v, want that it is not found", err)
	}
}
