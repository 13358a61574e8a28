package sources_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/proctest"
)

// watchesOf counts the watches of ConfigMaps that were begun in a namespace.
func watchesOf(t *testing.T, namespace string) int { return calls(t, namespace)["watch"] }

func TestOneWatchServesTheConfigMapsOfANamespace(t *testing.T) {
	ns := cluster.Namespace(t)
	allow(t, ns, "configmaps", "get list watch")
	var names []string
	for i := range 20 {
		store(t, ns, fmt.Sprint("m", i), map[string]string{"a": "one"})
		names = append(names, fmt.Sprintf("m%d/a", i))
	}
	w := watchedTemplates(t, ns, time.Hour, names...)
	running(t, w.Run)
	for _, name := range names {
		w.live(t, name)
	}
	if n := watchesOf(t, ns); n > 2 { // one to try, and one that stands
		t.Errorf("%d watches", n)
	}
	store(t, ns, "m7", map[string]string{"a": "two"})
	expect(t, w.hints, "m7/a")
}

// Without the right there is no watch, however many are asked for.
func TestWithoutTheRightThereIsNoWatch(t *testing.T) {
	ns := cluster.Namespace(t)
	var names []string
	for i := range 3 * targets.MaxTemplates {
		names = append(names, fmt.Sprintf("m%d/a", i))
	}
	w := watchedTemplates(t, ns, time.Hour, names...)
	running(t, w.Run)
	const tries = 1 + targets.MaxTemplates // of all, and of each that is in use
	proctest.Eventually(t, "each was tried", func() bool { return watchesOf(t, ns) == tries })
	w.text(t, "m1/a", "! forbidden")
	if n := watchesOf(t, ns); n != tries {
		t.Errorf("%d watches were asked for, want %d", n, tries)
	}
	w.text(t, fmt.Sprintf("m%d/a", targets.MaxTemplates), fmt.Sprintf("! %d templates", targets.MaxTemplates))
}

// Templates beyond the limit fail alone, those in use before stay, and who has
// waited for room hears of it.
func TestTemplatesBeyondTheLimitWaitForRoom(t *testing.T) {
	ns := cluster.Namespace(t)
	allow(t, ns, "configmaps", "get list watch")
	data := map[string]string{"large": strings.Repeat("x", 64<<10+1)}
	var names []string
	for i := range targets.MaxTemplates {
		key := fmt.Sprintf("b%02d", i)
		data[key] = key
		names = append(names, "m/"+key)
	}
	data["a"] = "a"
	store(t, ns, "m", data)
	w := watchedTemplates(t, ns, time.Hour, names...)
	running(t, w.Run)
	for _, name := range names {
		w.live(t, name)
	}
	w.used.set(ns, append([]string{"m/a"}, names...)...)
	w.Refresh()
	proctest.Eventually(t, "a limit", func() bool {
		_, err := w.Text(context.Background(), templateKey(ns, "m/a"))
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("%d templates", targets.MaxTemplates))
	})
	w.live(t, names[0])
	w.used.set(ns, append([]string{"m/a"}, names[1:]...)...)
	w.Refresh()
	expect(t, w.hints, "m/a")
	w.text(t, "m/a", "a")
	w.text(t, "m/large", "! large 65536")
}
