package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
)

// revocations are the ways in which a variable goes away, and comes back.
var revocations = []struct {
	name    string
	away    func(w *world, id string)
	back    func(w *world, id string)
	options []conjurdtest.Option
}{
	{"denied", (*world).deny, (*world).permit, nil},
	{"deleted", (*world).remove, (*world).restore, nil},
	{"denied by the genuine server", (*world).deny, (*world).permit, []conjurdtest.Option{conjurdtest.Strict()}},
	{"deleted on the genuine server", (*world).remove, (*world).restore, []conjurdtest.Option{conjurdtest.Strict()}},
}

// restore makes a deleted variable anew.
func (w *world) restore(id string) {
	w.t.Helper()
	w.variable(id)
	w.renew(id)
}

// revocableWorld has two files that hold the variable "shared", and two that
// do not.
func revocableWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, options...)
	w.group("first", "json", "first/user", "shared")
	w.group("second", "bash", "second/user")
	w.annotations["conjur-secrets.second"] += "- shared\n"
	w.group("third", "yaml", "third/user")
	w.group("fourth", "yaml", "fourth/user")
	return w
}

func TestRevokedVariableTakesItsFilesAndEndsTheSidecar(t *testing.T) {
	t.Parallel()
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := revocableWorld(t, r.options...)
			p := w.start()
			w.settle()
			before := w.look()
			value := w.renew("third/user")
			r.away(w, "shared")
			p.Exit(1)

			if w.exists("secrets", "first.json") || w.exists("secrets", "second.bash") {
				t.Error("a file with the revoked value is still there")
			}
			if got, want := w.file("third.yaml"), fmt.Sprintf(`"user": "%s"`, value); got != want {
				t.Errorf("third.yaml is %q, want %q: it changed before the removal", got, want)
			}
			fourth := w.path("secrets", "fourth.yaml")
			if w.look()[fourth] != before[fourth] {
				t.Error("fourth.yaml was touched")
			}
			if len(p.Lines("Failing", "shared")) == 0 {
				t.Error("the log does not name the variable")
			}
		})
	}
}

func TestSidecarThatStaysAfterRemoval(t *testing.T) {
	t.Parallel()
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := revocableWorld(t, r.options...)
			w.annotations["exit-on-revoked"] = "false"
			p := w.start()
			w.settle()
			r.away(w, "shared")
			eventually(t, "both files gone", func() bool {
				return !w.exists("secrets", "first.json") && !w.exists("secrets", "second.bash")
			})
			w.awaitUpdated()
			for _, id := range []string{"third/user", "fourth/user"} {
				w.await(strings.ReplaceAll(id, "/user", ".yaml"), w.renew(id))
			}
			user := w.renew("first/user") // not in its file before the other is back
			r.back(w, "shared")
			w.await("first.json", user)
			w.await("second.bash", w.value["shared"])
			w.await("third.yaml", w.renew("third/user"))
			p.Stop()
		})
	}
}

func TestRemovalSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := revocableWorld(t, r.options...)
			w.annotations["remove-deleted-secrets-enabled"] = "false"
			p := w.start()
			w.settle()
			before := w.look()
			r.away(w, "shared")
			eventually(t, "the proof in the log", func() bool {
				return len(p.Lines("Failing", "file/first", "shared")) > 0 && len(p.Lines("Failing", "file/second", "shared")) > 0
			})
			w.await("third.yaml", w.renew("third/user"))
			for range 3 {
				w.beat()
			}
			now := w.look()
			for _, name := range []string{"first.json", "second.bash", "fourth.yaml"} {
				if path := w.path("secrets", name); now[path] != before[path] {
					t.Errorf("%s was touched", name)
				}
			}
			p.Stop()
		})
	}
}

// TestRevocationsOneAfterTheOther: the second is not proven yet when the first
// would end the process, and its file goes all the same.
func TestRevocationsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := revocableWorld(t)
	p := w.start()
	w.settle()
	w.deny("fourth/user")
	eventually(t, "a question about the first", func() bool { return w.server.Counts().WhoAmI > 0 })
	w.remove("third/user")
	p.Exit(1)
	if w.exists("secrets", "third.yaml") || w.exists("secrets", "fourth.yaml") {
		t.Error("a file with a revoked value is still there")
	}
	if !w.exists("secrets", "first.json") || !w.exists("secrets", "second.bash") {
		t.Error("another file is gone")
	}
}

// TestRevokedWhileDown is found at the next start, which ends by it; the start
// after that has nothing to remove and stays for the others.
func TestRevokedWhileDown(t *testing.T) {
	t.Parallel()
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := revocableWorld(t, r.options...)
			p := w.start()
			w.settle()
			p.Stop()
			r.away(w, "shared")
			third := w.renew("third/user")
			w.start().Exit(1)
			if w.exists("secrets", "first.json") || w.exists("secrets", "second.bash") {
				t.Error("a file with the revoked value is still there")
			}
			w.await("third.yaml", third)

			p = w.start()
			w.await("fourth.yaml", w.renew("fourth/user"))
			eventually(t, "the proof in the log", func() bool { return len(p.Lines("Failing", "file/first", "shared")) > 0 })
			w.awaitUpdated()
			r.back(w, "shared")
			w.await("first.json", w.value["shared"])
			w.awaitUpdated()
			w.await("second.bash", w.value["shared"])
			p.Stop()
		})
	}
}

// TestSidecarStartsWithAMissingVariable among a hundred others: it delivers
// the rest, and the missing one does not spoil the empty answers.
func TestSidecarStartsWithAMissingVariable(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			for i := range 20 {
				g := fmt.Sprintf("group%d", i)
				w.group(g, "json", g+"/a", g+"/b", g+"/c", g+"/d", g+"/e")
			}
			w.remove("group7/c")
			p := w.start()
			for i := range 20 {
				if i != 7 {
					w.await(fmt.Sprintf("group%d.json", i), w.value[fmt.Sprintf("group%d/c", i)])
				}
			}
			w.server.ResetCounts()
			eventually(t, "empty answers", func() bool { return w.server.Counts().NotModified >= ticks })
			if n := w.server.Counts(); n.Data > 3*n.NotModified+5 {
				t.Errorf("one missing variable costs %+v", n)
			}
			if w.exists("secrets", "group7.json") || w.exists("status", notify.ProvidedFile) {
				t.Error("the file without its variable is there, or all is said to be provided")
			}
			w.restore("group7/c")
			w.await("group7.json", w.value["group7/c"])
			w.awaitProvided()
			p.Stop()
		})
	}
}
