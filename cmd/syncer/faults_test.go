package main

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// odd is a variable that no batch can ask for, so that the answer to a single
// question is put to the test too.
const odd = "app/odd,one"

// faultyWorld has files for a batch and for a single question, short lives of
// tokens and a short time for an answer.
func faultyWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, append(options, conjurdtest.TokenTTL(2*time.Second))...)
	w.Env["CONJUR_HTTP_TIMEOUT"] = "2"
	w.Group("db", "json", "db/user", "db/password")
	w.Group("web", "yaml", "web/password")
	w.Group("odd", "bash", odd)
	w.Annotations["conjur-secrets.odd"] = "- odd: " + odd + "\n"
	return w
}

// suffer runs a sidecar through a fault: it stays, its files stay, it says so
// once, and when the fault ends it recovers by itself.
func suffer(t *testing.T, w *world, begin, end func(), met func() bool) {
	t.Helper()
	p := w.start()
	w.settle()
	before := w.look()
	begin()
	for range 4 {
		w.beat()
		w.untouched(before)
	}
	eventually(t, "a word about the fault", func() bool { return len(p.Lines("Failing", `"poll"`)) > 0 })
	eventually(t, "the fault often enough", met)
	p.MustRun()
	w.untouched(before)
	end()
	db, single := w.Renew("db/password"), w.Renew(odd)
	w.await("db.json", db)
	w.await("odd.bash", single)
	words := func() []string { return p.Lines(`"subject": "poll"`) }
	eventually(t, "the end of what troubled the poll", func() bool {
		said := words()
		return len(said) > 0 && strings.Contains(said[len(said)-1], "Recovered")
	})
	p.Stop()
	// A machine with too much to do may have separate troubles as well, and a trouble may
	// change its cause. Each cause and each end has one line.
	last := "Recovered"
	for _, line := range words() {
		_, after, _ := strings.Cut(line, `"error": `)
		cause, _, _ := strings.Cut(after, `, "failures"`)
		if cause == "" {
			cause = "Recovered"
		}
		if cause == last {
			t.Errorf("the poll said twice in a row %s:\n%s", cause, strings.Join(words(), "\n"))
		}
		last = cause
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*gate){
		"refused": (*gate).refuse,
		"dark":    (*gate).swallow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := faultyWorld(t)
			g := newGate(w)
			suffer(t, w, func() { fault(g) }, g.open, func() bool { return true })
		})
	}
}
