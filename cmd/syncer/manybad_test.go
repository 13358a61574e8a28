package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// TestManyBadVariablesDelayNoRotation has a group that is well among 60 whose
// variables do not exist: one or a hundred in each. A rotation of it takes no
// more polls than without them. Package variables has twenty thousand.
func TestManyBadVariablesDelayNoRotation(t *testing.T) { // not beside other tests: polls are counted
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			w.annotations["secrets-refresh-interval"] = "3s"
			w.group("db", "json", "db/user", "db/password")
			for g := range 60 {
				n := 1
				if g%6 == 0 {
					n = 100
				}
				w.bad(fmt.Sprintf("bad%d", g), n)
			}
			var polls atomic.Int64 // that ask for what is well
			w.server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					ids := r.URL.Query().Get("variable_ids")
					if r.Header.Get("If-None-Match") != "" && strings.Contains(ids, "db/password") {
						polls.Add(1)
					}
					next.ServeHTTP(rw, r)
				})
			})
			p := w.start()
			w.await("db.json", w.value["db/password"])
			eventually(t, "a poll", func() bool { return polls.Load() > 0 })
			for range 3 {
				before := polls.Load()
				w.await("db.json", w.renew("db/password"))
				// One may be under way as the value is set, and others come
				// before the file is seen, on a slow machine.
				if n := polls.Load() - before; n > 5 {
					t.Errorf("a rotation took %d polls", n)
				}
			}
			p.Stop()
		})
	}
}

// bad adds a group of n variables that do not exist, with ids between those of
// others.
func (w *world) bad(name string, n int) {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "- v%d: db/p%d-%s\n", i, i, name)
	}
	w.annotations["conjur-secrets."+name] = list.String()
}
