package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// populate makes variables with values that the host may read.
func (w *world) populate(ids ...string) {
	w.Helper()
	var policy strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&policy, "- !variable %q\n- !permit { role: !host app, privileges: [read, execute], resource: !variable %q }\n", id, id)
	}
	w.Server.Policy(policy.String())
	w.Renew(ids...)
}

// seen makes a variable with a value that the host may see and not read.
func (w *world) seen(id string) {
	w.Helper()
	w.Server.Policy(fmt.Sprintf("- !variable %q\n- !permit { role: !host app, privileges: [read], resource: !variable %q }\n", id, id))
	w.Renew(id)
}

// all defines a group of all variables.
func (w *world) all(name, format string) {
	w.Annotations["conjur-secrets."+name] = "*"
	w.Annotations["secret-file-format."+name] = format
}

// holds reports whether a JSON file has just the variables, with their values.
func (w *world) holds(name string, ids []string) bool {
	want := map[string]string{}
	for _, id := range ids {
		want[id] = w.Value[id]
	}
	var got map[string]string
	return json.Unmarshal([]byte(w.file(name)), &got) == nil && maps.Equal(got, want)
}

func (w *world) awaitAll(name string, ids []string) {
	w.Helper()
	eventually(w, fmt.Sprintf("%d variables in %s", len(ids), name), func() bool { return w.holds(name, ids) })
}

func many(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("app/%03d/variable-%04d", i%100, i)
	}
	slices.Sort(ids)
	return ids
}

// isList tells requests for the list of variables.
func isList(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/resources/") && !r.URL.Query().Has("check")
}

// TestAllVariablesOfALargeServer has more variables than a page of the list
// or a request for values holds, and two among them that have no value.
func TestAllVariablesOfALargeServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conjurdtest.Strict())
	ids := many(1200)
	w.populate(ids...)
	w.seen("app/050/unreadable")
	w.Declare("app/060/never-set")
	w.all("all", "json")
	p := w.start()
	w.awaitProvided()
	if !w.holds("all.json", ids) {
		t.Error("all.json does not hold just what has a value")
	}
	var warned []string
	eventually(t, "a warning", func() bool {
		warned = p.Lines("WARN", "file/all", "left out")
		return len(warned) > 0
	})
	if len(warned) != 1 || !strings.Contains(warned[0], "app/050/unreadable") {
		t.Errorf("warnings %q, want one that names the unreadable one", warned)
	}
	if unset := p.Lines("INFO", "without a value", "app/060/never-set"); len(unset) != 1 {
		t.Errorf("%d lines about the variable without a value, want one", len(unset))
	}
	w.Renew("app/060/never-set")
	more := slices.Sorted(slices.Values(append(ids, "app/060/never-set")))
	w.awaitAll("all.json", more)
	p.Stop()
}

// TestVariablesThatComeAndGo: what no entry names ends no process.
func TestVariablesThatComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.populate("app/a", "app/b", "app/c", "other/x")
	w.all("below", "json")
	w.Annotations["conjur-secrets-policy-path.below"] = "app"
	w.Group("plain", "json", "plain/v")
	p := w.start()
	w.settle()
	w.awaitAll("below.json", []string{"app/a", "app/b", "app/c"})
	plain := w.look()[w.Path("secrets", "plain.json")]

	w.populate("app/new/deep", "other/y")
	w.awaitAll("below.json", []string{"app/a", "app/b", "app/c", "app/new/deep"})
	w.Deny("app/b")
	w.awaitAll("below.json", []string{"app/a", "app/c", "app/new/deep"})
	eventually(t, "a warning", func() bool { return len(p.Lines("WARN", "file/below", "app/b")) == 1 })
	w.Permit("app/b")
	w.awaitAll("below.json", []string{"app/a", "app/b", "app/c", "app/new/deep"})
	if w.look()[w.Path("secrets", "plain.json")] != plain {
		t.Error("another target was touched")
	}
	p.Stop()
}
