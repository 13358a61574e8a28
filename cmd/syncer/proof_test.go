package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
)

// refusing is a gateway that answers questions for values with 403 and those
// for resources with 404, both without a body, and lets all else pass. It counts
// the questions.
func refusing(values *atomic.Int64) conjurdtest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/secrets"):
				values.Add(1)
				rw.WriteHeader(http.StatusForbidden)
			case strings.HasPrefix(r.URL.Path, "/resources"):
				rw.WriteHeader(http.StatusNotFound)
			default:
				next.ServeHTTP(rw, r)
			}
		})
	}
}

// TestGatewayThatRefusesEverything is no reason to remove anything, be there few
// variables or so many that the brake would hold for a while.
func TestGatewayThatRefusesEverything(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conjurdtest.Strict())
			w.annotations["removal-brake-hold"] = "1s"
			for i := range n {
				w.group(fmt.Sprintf("g%d", i), "json", fmt.Sprintf("app/v%d", i))
			}
			p := w.start()
			w.settle()
			before := w.look()
			var asked atomic.Int64
			w.server.Intercept(refusing(&asked))
			eventually(t, "what was seen in the log", func() bool { return len(p.Lines("any gateway may say")) > 0 })
			seen := asked.Load()
			eventually(t, "many polls", func() bool { return asked.Load() >= seen+12 })
			w.untouched(before)
			w.server.Intercept(nil)
			w.await("g0.json", w.renew("app/v0"))
			p.Stop()
		})
	}
}

// TestFollowerThatLacksAVariable answers every other request, more or less. A
// proof has a least time, and what either of the two servers has is not gone.
func TestFollowerThatLacksAVariable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conjurdtest.Strict())
	delete(w.annotations, "removal-grace")
	w.group("g", "json", "app/a", "app/b")
	p := w.start()
	w.settle()
	before := w.look()
	var lacked atomic.Int64
	gone := answer(404, "application/json", `{"error":{"code":"not_found","message":"CONJ00076E Variable `+conjurdtest.Account+`:variable:app/a is empty or not found."}}`)
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			uri, _ := url.QueryUnescape(r.RequestURI)
			if !strings.HasPrefix(uri, "/secrets") || !strings.Contains(uri, "app/a") || rand.IntN(2) == 0 {
				next.ServeHTTP(rw, r)
				return
			}
			lacked.Add(1)
			gone(rw, r)
		})
	})
	eventually(t, "many looks at the follower", func() bool { return lacked.Load() >= 15 })
	w.untouched(before)
	w.server.Intercept(nil)
	w.await("g.json", w.renew("app/a"))
	p.Stop()
}

// TestOneShotWaitsForProof when its retries are over sooner than the least time
// of a proof: what is gone since the run before is removed all the same.
func TestOneShotWaitsForProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.annotations["removal-grace"] = "5s"
	w.oneShot("init", 1)
	w.group("db", "json", "db/password")
	w.group("web", "json", "web/password")
	w.start().Exit(0)
	w.remove("db/password")
	p := w.start()
	p.Exit(1)
	if w.exists("secrets", "db.json") || !w.exists("secrets", "web.json") {
		t.Error("the file with the deleted value is still there, or another is gone")
	}
	if len(p.Lines("Proven to be gone", "db/password")) != 1 {
		t.Error("it is not told that the proof is complete")
	}
}

// TestListThatIsShortAtAStart lacks most variables, all of which can be read: at
// a start of the process, after a change of its configuration, and in one that
// delivers once. The files lose none of them.
func TestListThatIsShortAtAStart(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml", "java-properties"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			delete(w.annotations, "removal-grace")
			var ids []string
			for i := range 10 {
				ids = append(ids, fmt.Sprintf("app/db %d", i))
			}
			w.populate(ids...)
			w.all("g", format)
			p := w.start()
			w.awaitProvided()
			var lists atomic.Int64
			w.server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if !isList(r) {
						next.ServeHTTP(rw, r)
						return
					}
					lists.Add(1)
					answer(200, "application/json", fmt.Sprintf(`[{"id":"%s:variable:%s"}]`, conjurdtest.Account, ids[3]))(rw, r)
				})
			})
			more := func(what string) {
				seen := lists.Load()
				eventually(t, what, func() bool { return lists.Load() >= seen+4 })
			}
			before := w.look()
			more("short lists")
			w.annotations["log-level"] = "debug"
			w.annotate()
			more("short lists after a change of the log level")
			w.untouched(before)
			p.Stop()
			p = w.start()
			more("short lists after a restart")
			w.untouched(before)
			w.await(w.only(), w.renew(ids[7])) // it is still followed
			p.Stop()

			w.oneShot("init", 2)
			before = w.look()
			w.start().Exit(0)
			w.untouched(before)
		})
	}
}

// only is the path of the one file below the secrets folder.
func (w *world) only() string {
	w.t.Helper()
	files, err := os.ReadDir(w.path("secrets"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("%v: %v", files, err)
	}
	return files[0].Name()
}

// TestFollowerThatServesTheOldValue answers every other request, more or less:
// the application is told once, and keeps the new value.
func TestFollowerThatServesTheOldValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delete(w.annotations, "removal-grace")
	w.group("g", "json", "app/a")
	p := w.start()
	w.settle()
	old := w.value["app/a"]
	var behind atomic.Int64
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/secrets" || rand.IntN(2) == 0 {
				next.ServeHTTP(rw, r)
				return
			}
			behind.Add(1)
			value := base64.StdEncoding.EncodeToString([]byte(old)) + `\n`
			answer(200, "application/json", fmt.Sprintf(`{"%s:variable:app/a":"%s"}`, conjurdtest.Account, value),
				"Content-Encoding", "base64")(rw, r)
		})
	})
	value := w.renew("app/a")
	w.await("g.json", value)
	w.awaitUpdated()
	before, seen := w.look(), behind.Load()
	eventually(t, "many answers of the follower", func() bool { return behind.Load() >= seen+10 })
	w.untouched(before)
	if w.exists("status", notify.UpdatedFile) {
		t.Error("the application was told more than once")
	}
	if n := len(p.Lines("have an earlier value again")); n != 1 {
		t.Errorf("the earlier value was told of %d times", n)
	}
	w.server.Intercept(nil)
	w.await("g.json", w.renew("app/a"))
	p.Stop()
}
