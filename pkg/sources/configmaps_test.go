package sources_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/proctest"
)

// inUse is the templates in use, which a test changes.
type inUse struct {
	mu    sync.Mutex
	keys  []targets.ConfigMapKey
	asked int // how often
}

func (u *inUse) set(namespace string, names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = nil
	for _, name := range names {
		u.keys = append(u.keys, templateKey(namespace, name))
	}
}

func (u *inUse) ConfigMaps() []targets.ConfigMapKey {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	return u.keys
}

func (u *inUse) times() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked
}

// ByConfigMap returns the templates themselves, as "configmap/key".
func (*inUse) ByConfigMap(keys ...targets.ConfigMapKey) (found []targets.Key) {
	for _, key := range keys {
		found = append(found, targets.Key(key.Name+"/"+key.Key))
	}
	return found
}

// templateKey reads "configmap/key".
func templateKey(namespace, name string) targets.ConfigMapKey {
	name, key, _ := strings.Cut(name, "/")
	return targets.ConfigMapKey{Namespace: namespace, Name: name, Key: key}
}

// templates is ConfigMaps that hands on what it hints at, one text a hint: the
// templates as "configmap/key", with spaces between.
type templates struct {
	*sources.ConfigMaps
	namespace      string
	used           *inUse
	hints, reports chan string
}

func watchedTemplates(t *testing.T, namespace string, interval time.Duration, names ...string) *templates {
	t.Helper()
	reports, report := reporting()
	w := &templates{namespace: namespace, used: &inUse{}, hints: make(chan string, 1000), reports: reports}
	w.used.set(namespace, names...)
	w.ConfigMaps = &sources.ConfigMaps{
		Client: client(t, namespace), Interval: interval, Users: w.used, Reporter: report,
		Queue: enqueueFunc(func(h queue.Hint, keys ...targets.Key) {
			if h.Trigger != "template" || !h.Wakes {
				t.Errorf("hint %+v", h)
			}
			w.hints <- strings.Trim(fmt.Sprint(keys), "[]")
		}),
	}
	return w
}

// text expects a template's text, or else an error with all the parts of want,
// which then begins with "!".
func (w *templates) text(t *testing.T, name, want string) {
	t.Helper()
	got, err := w.Text(t.Context(), templateKey(w.namespace, name))
	if rest, fails := strings.CutPrefix(want, "!"); fails {
		for _, part := range strings.Fields(rest) {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Fatalf("template %s: %q, %v; want an error with %q", name, got, err, rest)
			}
		}
	} else if err != nil || got != want {
		t.Fatalf("template %s is %q, %v; want %q", name, got, err, want)
	}
}

// live waits until the template is given from memory.
func (w *templates) live(t *testing.T, name string) {
	t.Helper()
	proctest.Eventually(t, name+" is watched", func() bool {
		before := calls(t, w.namespace)["get"]
		_, err := w.Text(t.Context(), templateKey(w.namespace, name))
		return !apierrors.IsForbidden(err) && calls(t, w.namespace)["get"] == before
	})
}

// store makes a ConfigMap, or replaces its data.
func store(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	put(t, namespace, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data})
}

func put(t *testing.T, namespace string, m *corev1.ConfigMap) {
	t.Helper()
	api := cluster.Core.ConfigMaps(namespace)
	_, err := api.Create(t.Context(), m, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = api.Update(t.Context(), m, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEditedTemplateOfAConfigMapHintsAtItsTarget(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one", "b": "one", "unused": "one"})
	allow(t, ns, "configmaps", "get list watch", "m")
	w := watchedTemplates(t, ns, time.Hour, "m/a", "m/b")
	w.text(t, "m/a", "one") // before it runs
	running(t, w.Run)
	w.live(t, "m/a")
	w.live(t, "m/b")

	store(t, ns, "m", map[string]string{"a": "one", "b": "one", "unused": "two"})
	store(t, ns, "m", map[string]string{"a": "one", "b": "two", "unused": "two"})
	expect(t, w.hints, "m/b")
	w.text(t, "m/b", "two")
	store(t, ns, "m", map[string]string{"a": "two", "b": "three"})
	expect(t, w.hints, "m/a m/b")
	w.text(t, "m/a", "two")
	before := calls(t, ns)["get"]
	w.text(t, "m/b", "three")
	if got := calls(t, ns)["get"]; got != before {
		t.Error("a template that is watched was asked for")
	}
	if n := len(w.hints); n != 0 {
		t.Errorf("one more hint, at %s", <-w.hints)
	}
}

func TestATemplateThatIsMissingHintsWhenItAppears(t *testing.T) {
	ns := cluster.Namespace(t)
	allow(t, ns, "configmaps", "get list watch")
	w := watchedTemplates(t, ns, time.Hour, "m/a")
	w.text(t, "m/a", "! no configmap "+ns+"/m template a create")
	running(t, w.Run)
	w.live(t, "m/a")
	w.text(t, "m/a", "! no configmap "+ns+"/m template a create")
	changes := func(want string, data map[string]string) {
		t.Helper()
		store(t, ns, "m", data)
		expect(t, w.hints, "m/a")
		w.text(t, "m/a", want)
	}
	changes("! configmap "+ns+"/m no template a add", map[string]string{"b": "one"})
	changes("one", map[string]string{"a": "one"})
	changes("! configmap "+ns+"/m no template a add", map[string]string{"b": "one"})
	changes("", map[string]string{"a": ""}) // empty, but there
	if err := cluster.Core.ConfigMaps(ns).Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, w.hints, "m/a")
	w.text(t, "m/a", "! no configmap "+ns+"/m template a create")
	changes("two", map[string]string{"a": "two"})
	put(t, ns, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, BinaryData: map[string][]byte{"a": {0xff}}})
	expect(t, w.hints, "m/a")
	w.text(t, "m/a", "! configmap "+ns+"/m template a binaryData UTF-8")
	changes("three", map[string]string{"a": "three"})
}

// A change between a worker's first read and the watch must not be lost.
func TestAChangeBeforeTheWatchIsHintedAt(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one", "b": "one"})
	allow(t, ns, "configmaps", "get list watch")
	w := watchedTemplates(t, ns, time.Hour, "m/a", "m/b")
	w.text(t, "m/a", "one")
	store(t, ns, "m", map[string]string{"a": "two", "b": "two"})
	running(t, w.Run)
	expect(t, w.hints, "m/a") // nobody read b
	w.text(t, "m/a", "two")

	w = watchedTemplates(t, ns, time.Hour, "m/a", "m/b")
	w.text(t, "m/a", "two")
	w.text(t, "m/b", "two")
	if err := cluster.Core.ConfigMaps(ns).Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running(t, w.Run)
	expect(t, w.hints, "m/a m/b")
	w.text(t, "m/a", "! no configmap")
}

func TestTheTemplatesInUseAreWatched(t *testing.T) {
	ns := cluster.Namespace(t)
	for _, name := range []string{"m", "n", "o"} {
		store(t, ns, name, map[string]string{"a": "one", "b": "one"})
	}
	allow(t, ns, "configmaps", "get list watch")
	w := watchedTemplates(t, ns, time.Hour, "m/a", "n/a")
	running(t, w.Run)
	w.live(t, "m/a")
	w.live(t, "n/a")

	w.used.set(ns, "m/b", "m/a", "o/a")
	w.Refresh()
	w.live(t, "m/b")
	w.live(t, "o/a")
	store(t, ns, "n", map[string]string{"a": "two"})
	store(t, ns, "m", map[string]string{"a": "two", "b": "two"})
	expect(t, w.hints, "m/a m/b")
	store(t, ns, "o", map[string]string{"a": "two"})
	expect(t, w.hints, "o/a")
	w.text(t, "n/a", "two") // asked for, since it is not watched
	store(t, ns, "n", map[string]string{"a": "three"})
	w.text(t, "n/a", "three")

	w.used.set(ns, "m/a")
	w.Refresh()
	w.live(t, "m/a")
	store(t, ns, "m", map[string]string{"a": "three", "b": "three"})
	expect(t, w.hints, "m/a")

	w.used.set(ns) // none at all
	w.Refresh()
	w.used.set(ns, "n/a")
	w.Refresh()
	w.live(t, "n/a")
}

func TestATemplateThatIsNoLongerInUseIsNoLongerWatched(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one"})
	allow(t, ns, "configmaps", "get list watch")
	w := watchedTemplates(t, ns, time.Hour)
	running(t, w.Run)
	var before int // goroutines
	for round := range 20 {
		w.used.set(ns, "m/a")
		w.Refresh()
		w.live(t, "m/a")
		w.used.set(ns)
		w.Refresh()
		proctest.Eventually(t, "not watched", func() bool {
			got := calls(t, ns)["get"]
			w.text(t, "m/a", "one")
			return calls(t, ns)["get"] > got
		})
		if round == 0 {
			before = runtime.NumGoroutine()
		}
	}
	proctest.Eventually(t, "the watches are over", func() bool { return runtime.NumGoroutine() < before+10 })
}

func TestWithoutTheRightToWatchTemplatesAreAskedFor(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one"})
	allow(t, ns, "configmaps", "get", "m")
	w := watchedTemplates(t, ns, 20*time.Millisecond, "m/a")
	running(t, w.Run)
	subject := "watch of template configmaps: "
	await(t, w.reports, subject+"limited: "+ns+"/m: ", "forbidden", "reading it every 20ms")
	w.used.set(ns, "m/a", "n/a")
	w.Refresh()
	await(t, w.reports, subject+ns+"/n: ", "forbidden", "trying again every 20ms")
	w.text(t, "m/a", "one")
	store(t, ns, "m", map[string]string{"a": "two"})
	w.text(t, "m/a", "two") // at once, and at the next look:
	store(t, ns, "m", map[string]string{"a": "three"})
	expect(t, w.hints, "m/a")
	w.text(t, "m/a", "three")
	w.text(t, "n/a", "! forbidden "+ns+"/n")

	allow(t, ns, "configmaps", "list watch", "m")
	w.used.set(ns, "m/a")
	w.Refresh()
	w.live(t, "m/a") // nothing else is asked for any more
	await(t, w.reports, subject+"<nil>")
}

// Each new Secret refreshes the templates in use, and few have one.
func TestARefreshWithoutAChangeAsksForNothing(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one"})
	allow(t, ns, "configmaps", "get", "m")
	w := watchedTemplates(t, ns, time.Hour, "m/a")
	running(t, w.Run)
	subject := "watch of template configmaps: "
	await(t, w.reports, subject+"limited: "+ns+"/m: ", "forbidden")
	for range 20 {
		before := w.used.times()
		w.Refresh()
		proctest.Eventually(t, "the templates in use are looked up", func() bool { return w.used.times() > before })
	}
	w.used.set(ns, "m/a", "n/a")
	w.Refresh()
	await(t, w.reports, subject+ns+"/n: ", "forbidden")
	if tries := calls(t, ns)["watch"]; tries != 5 { // all of the namespace and m, and again with n
		t.Errorf("%d tries to watch, want 5", tries)
	}
}

// While the API server is away, values still rotate: the last text does.
func TestATemplateIsKnownWhileTheAPIServerIsAway(t *testing.T) {
	ns := cluster.Namespace(t)
	store(t, ns, "m", map[string]string{"a": "one"})
	allow(t, ns, "configmaps", "get list watch")
	w := watchedTemplates(t, ns, time.Hour, "m/a")
	running(t, w.Run)
	w.live(t, "m/a")
	cluster.StopAPIServer(t)
	await(t, w.reports, "refused")
	w.text(t, "m/a", "one")
	w.text(t, "n/a", "! refused n")
	cluster.StartAPIServer(t)
	await(t, w.reports, "<nil>")
	store(t, ns, "m", map[string]string{"a": "two"})
	expect(t, w.hints, "m/a")
	w.text(t, "m/a", "two")
}
