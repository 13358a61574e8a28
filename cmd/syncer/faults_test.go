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
	eventually(t, "the end of what troubled the poll", func() bool { return len(words())%2 == 0 })
	p.Stop()
	said := words()
	for i, line := range said {
		// A machine with too much to do may have troubles of its own as well.
		if want := []string{"Failing", "Recovered"}[i%2]; !strings.Contains(line, want) {
			t.Errorf("the poll said %q; want one word when a trouble begins and one when it ends", said)
			break
		}
	}
	if len(said)%2 != 0 {
		t.Errorf("the last that the poll said is %q", said[len(said)-1])
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
