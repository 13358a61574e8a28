package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// populate makes variables with values that the host may read.
func (w *world) populate(ids ...string) {
	w.t.Helper()
	var policy strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&policy, "- !variable %q\n- !permit { role: !host app, privileges: [read, execute], resource: !variable %q }\n", id, id)
	}
	w.server.Policy(policy.String())
	w.renewTogether(ids...)
}

// seen makes a variable with a value that the host may see and not read.
func (w *world) seen(id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- !variable %q\n- !permit { role: !host app, privileges: [read], resource: !variable %q }\n", id, id))
	w.renew(id)
}

// all defines a group of all variables.
func (w *world) all(name, format string) {
	w.annotations["conjur-secrets."+name] = "*"
	w.annotations["secret-file-format."+name] = format
}

// holds reports whether a JSON file has just the variables, with their values.
func (w *world) holds(name string, ids []string) bool {
	want := map[string]string{}
	for _, id := range ids {
		want[id] = w.value[id]
	}
	var got map[string]string
	return json.Unmarshal([]byte(w.file(name)), &got) == nil && maps.Equal(got, want)
}

func (w *world) awaitAll(name string, ids []string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d variables in %s", len(ids), name), func() bool { return w.holds(name, ids) })
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
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			ids := many(2500)
			w.populate(ids...)
			w.seen("app/050/unreadable")
			w.variable("app/060/never-set")
			w.all("all", "json")
			w.all("list", "template")
			w.template("list", "{{ range .SecretsArray }}{{ .Alias }}\n{{ end }}")
			p := w.start()
			w.awaitProvided()
			if !w.holds("all.json", ids) {
				t.Error("all.json does not hold just what has a value")
			}
			if got := w.file("list.out"); got != strings.Join(ids, "\n")+"\n" {
				t.Errorf("the template saw %d lines, want all aliases in order", strings.Count(got, "\n"))
			}
			for _, target := range []string{"file/all", "file/list"} {
				var warned []string
				eventually(t, "a warning", func() bool {
					warned = p.Lines("WARN", target, "left out")
					return len(warned) > 0
				})
				if len(warned) != 1 || !strings.Contains(warned[0], "app/050/unreadable") || !strings.Contains(warned[0], "app/060/never-set") {
					t.Errorf("%s: warnings %q, want one that names both", target, warned)
				}
			}

			w.quiet(p)
			w.renew(ids[1234])
			w.awaitAll("all.json", ids)
			w.renew("app/060/never-set")
			more := slices.Sorted(slices.Values(append(ids, "app/060/never-set")))
			w.awaitAll("all.json", more)
			w.permit("app/050/unreadable")
			more = slices.Sorted(slices.Values(append(more, "app/050/unreadable")))
			w.awaitAll("all.json", more)
			p.Stop()
		})
	}
}

// quiet checks, over some polls in which nothing changes, that no value
// travels and nothing is written or logged. It begins when both proofs
// about the variables without a value are there.
func (w *world) quiet(p *proctest.Process) {
	w.t.Helper()
	const pages = 3
	var lists atomic.Int64 // requests for a page
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isList(r) {
				lists.Add(1)
			}
			next.ServeHTTP(rw, r)
		})
	})
	polls := func(n int64) {
		w.t.Helper()
		enough := lists.Load() + n*pages
		eventually(w.t, "more polls", func() bool { return lists.Load() >= enough })
	}
	for _, id := range []string{"app/050/unreadable", "app/060/never-set"} {
		eventually(w.t, "a proof", func() bool { return len(p.Lines("Proven to be gone", id)) > 0 })
	}
	polls(4) // what follows from the proofs has been done by then
	before, said := w.look(), p.Log()
	w.server.ResetCounts()
	polls(4)
	// The last request may not have been answered yet, and an error has a body
	// that names the variable.
	if n := w.server.Counts(); n.Data > n.NotModified+n.DataErrors+1 || n.DataBytes > 200*n.DataErrors {
		w.t.Errorf("values travelled while nothing changed: %+v", n)
	}
	w.untouched(before)
	if now := p.Log(); now != said {
		w.t.Errorf("unchanged refreshes were logged:\n%s", now[len(said):])
	}
}

func TestVariablesThatComeAndGo(t *testing.T) {
	t.Parallel()
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r.options...)
			w.populate("app/a", "app/b", "app/c", "other/x")
			w.all("below", "json")
			w.annotations["conjur-secrets-policy-path.below"] = "app"
			w.group("plain", "json", "plain/v")
			p := w.start()
			w.settle()
			w.awaitAll("below.json", []string{"app/a", "app/b", "app/c"})
			plain := w.look()[w.path("secrets", "plain.json")]

			w.populate("app/new/deep", "other/y")
			w.awaitAll("below.json", []string{"app/a", "app/b", "app/c", "app/new/deep"})
			r.away(w, "app/b")
			w.awaitAll("below.json", []string{"app/a", "app/c", "app/new/deep"})
			eventually(t, "a warning", func() bool { return len(p.Lines("WARN", "file/below", "app/b")) == 1 })
			r.back(w, "app/b")
			w.awaitAll("below.json", []string{"app/a", "app/b", "app/c", "app/new/deep"})
			if w.look()[w.path("secrets", "plain.json")] != plain {
				t.Error("another target was touched")
			}
			p.Stop() // it stayed, as nothing that has a name was revoked
		})
	}
}

// TestOneNameAmongAll has a variable that an entry names, which is revoked.
func TestOneNameAmongAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.populate("app/a", "app/named")
	w.annotations["conjur-secrets.g"] = "- \"*\"\n- short: app/named\n"
	w.annotations["secret-file-format.g"] = "json"
	p := w.start()
	w.settle()
	var got map[string]string
	if err := json.Unmarshal([]byte(w.file("g.json")), &got); err != nil || !maps.Equal(got, map[string]string{
		"app/a": w.value["app/a"], "app/named": w.value["app/named"], "short": w.value["app/named"],
	}) {
		t.Errorf("g.json holds %d aliases (%v)", len(got), err)
	}
	w.deny("app/named")
	p.Exit(1)
	if w.exists("secrets", "g.json") {
		t.Error("the file with the revoked value is still there")
	}
}

// badLists are answers that say nothing about which variables there are.
func badLists() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"502":             answer(502, asHTML, page),
		"404 page":        answer(404, asHTML, page),
		"403":             answer(403, asHTML, ""),
		"empty":           answer(200, asJSON, "[]"),
		"page":            answer(200, asHTML, page),
		"another account": answer(200, asJSON, `[{"id":"prod:variable:app/a"}]`),
		"hang up":         hangUp("HTTP/1.1 200 OK\r\n"),
	}
}

func TestBadListsTouchNothing(t *testing.T) {
	t.Parallel()
	for name, bad := range badLists() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.populate("app/a", "app/b")
			w.all("g", "json")
			p := w.start()
			w.settle()
			before := w.look()
			var lists atomic.Int64
			w.server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if isList(r) {
						lists.Add(1)
						bad(rw, r)
						return
					}
					next.ServeHTTP(rw, r)
				})
			})
			eventually(t, "lists that fail", func() bool { return lists.Load() >= 3 })
			w.untouched(before)
			w.renew("app/a") // what is known goes on
			w.awaitAll("g.json", []string{"app/a", "app/b"})
			if len(p.Lines("Failing", "list")) == 0 {
				t.Error("the log does not tell of the list")
			}
			w.server.Intercept(nil)
			w.populate("app/c")
			w.awaitAll("g.json", []string{"app/a", "app/b", "app/c"})
			p.Stop()
		})
	}
}

func TestOneShotOfAllVariables(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 3} {
		t.Run(fmt.Sprintf("%d retries", retries), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conjurdtest.Strict())
			w.oneShot("init", retries)
			ids := []string{"a", "b/with,comma", "b/ünï", "c"}
			w.populate(ids...)
			w.seen("b/unreadable")
			w.variable("b/never-set")
			w.all("g", "json")
			w.start().Exit(0)
			if !w.holds("g.json", ids) || !w.exists("status", notify.ProvidedFile) {
				t.Errorf("g.json holds %s", w.file("g.json"))
			}
			before := w.look()
			w.start().Exit(0)
			w.untouched(before)
		})
	}
}

func TestOneShotWithoutAListDeliversNothing(t *testing.T) {
	t.Parallel()
	for name, bad := range badLists() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oneShot("init", 1)
			w.populate("app/a")
			w.all("g", "json")
			w.group("plain", "json", "plain/v")
			if err := os.WriteFile(w.path("secrets", "g.json"), []byte("from before"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if isList(r) {
						bad(rw, r)
						return
					}
					next.ServeHTTP(rw, r)
				})
			})
			p := w.start()
			p.Exit(1)
			if got := w.file("g.json"); got != "from before" {
				t.Errorf("g.json holds %q", got)
			}
			if !strings.Contains(w.file("plain.json"), w.value["plain/v"]) {
				t.Error("another target was not delivered")
			}
			if len(p.Lines("1 of 2 targets were not delivered: file/g")) == 0 {
				t.Error("the log does not say what is missing")
			}
		})
	}
}

func TestFormatThatCannotHoldAllVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("init", 0)
	w.populate("app/a")
	w.all("g", "properties")
	p := w.start()
	p.Exit(1)
	if len(p.Lines("conjur-secrets.g", "does not suit format properties")) == 0 || w.server.Counts() != (conjurdtest.Counts{}) {
		t.Errorf("want an error at the start and no request; requests: %+v", w.server.Counts())
	}
}
