package main

import (
	"fmt"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// What counts as proof is tested in test/removal, and the brake in pkg/conjur/variables.
// Here a process removes, ends, and stays.

// restore makes a deleted variable anew.
func (w *world) restore(id string) {
	w.Helper()
	w.Declare(id)
	w.Renew(id)
}

// revocableWorld has two files that hold the variable "shared", and two that
// do not.
func revocableWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, options...)
	w.Group("first", "json", "first/user", "shared")
	w.Group("second", "bash", "second/user")
	w.Annotations["conjur-secrets.second"] += "- shared\n"
	w.Group("third", "yaml", "third/user")
	w.Group("fourth", "yaml", "fourth/user")
	return w
}

// TestRevokedVariableTakesItsFilesAndEndsTheSidecar: the next process has nothing
// to remove, and stays for the others.
func TestRevokedVariableTakesItsFilesAndEndsTheSidecar(t *testing.T) {
	t.Parallel()
	w := revocableWorld(t, conjurdtest.Strict())
	p := w.start()
	w.settle()
	before := w.look()
	value := w.Renew("third/user")
	w.Deny("shared")
	p.Exit(1)

	if w.exists("secrets", "first.json") || w.exists("secrets", "second.bash") {
		t.Error("a file with the revoked value is still there")
	}
	if got, want := w.file("third.yaml"), fmt.Sprintf(`"user": "%s"`, value); got != want {
		t.Errorf("third.yaml is %q, want %q: it changed before the removal", got, want)
	}
	fourth := w.Path("secrets", "fourth.yaml")
	if w.look()[fourth] != before[fourth] {
		t.Error("fourth.yaml was touched")
	}
	if len(p.Lines("Failing", "shared")) == 0 {
		t.Error("the log does not name the variable")
	}

	p = w.start()
	w.await("fourth.yaml", w.Renew("fourth/user"))
	eventually(t, "the proof in the log", func() bool { return len(p.Lines("Failing", "file/first", "shared")) > 0 })
	w.Permit("shared")
	w.await("first.json", w.Value["shared"])
	w.await("second.bash", w.Value["shared"])
	p.Stop()
}

// TestSidecarThatStaysAfterRemoval: what is back in Conjur is back in its files;
// once removal is switched off, nothing goes any more.
func TestSidecarThatStaysAfterRemoval(t *testing.T) {
	t.Parallel()
	w := revocableWorld(t)
	w.Annotations["exit-on-revoked"] = "false"
	p := w.start()
	w.settle()
	w.Remove("shared")
	eventually(t, "both files gone", func() bool {
		return !w.exists("secrets", "first.json") && !w.exists("secrets", "second.bash")
	})
	w.awaitUpdated()
	user := w.Renew("first/user") // not in its file before the other is back
	w.restore("shared")
	w.await("first.json", user)
	w.await("second.bash", w.Value["shared"])

	w.Annotations["remove-deleted-secrets-enabled"] = "false"
	w.Annotate()
	eventually(t, "the change taken up", func() bool { return len(p.Lines("the running process applies it")) > 0 })
	before, proofs := w.look(), len(p.Lines("Proven to be gone", "shared"))
	w.Remove("shared")
	eventually(t, "another proof in the log", func() bool { return len(p.Lines("Proven to be gone", "shared")) > proofs })
	w.await("third.yaml", w.Renew("third/user"))
	for range 3 {
		w.beat()
	}
	for _, name := range []string{"first.json", "second.bash", "fourth.yaml"} {
		if path := w.Path("secrets", name); w.look()[path] != before[path] {
			t.Errorf("%s was touched", name)
		}
	}
	p.Stop()
}

// TestRevocationsOneAfterTheOther: the second is not proven yet when the first
// would end the process, and its file goes all the same.
func TestRevocationsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := revocableWorld(t)
	p := w.start()
	w.settle()
	w.Deny("fourth/user")
	eventually(t, "a question about the first", func() bool { return w.Server.Counts().WhoAmI > 0 })
	w.Remove("third/user")
	p.Exit(1)
	if w.exists("secrets", "third.yaml") || w.exists("secrets", "fourth.yaml") {
		t.Error("a file with a revoked value is still there")
	}
	if !w.exists("secrets", "first.json") || !w.exists("secrets", "second.bash") {
		t.Error("another file is gone")
	}
}

// TestOneShotWaitsForProof when its retries are over sooner than the least time
// of a proof: what is gone since the run before is removed all the same.
func TestOneShotWaitsForProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Annotations["removal-grace"] = "5s"
	w.oneShot("init", 1)
	w.Group("db", "json", "db/password")
	w.Group("web", "json", "web/password")
	w.start().Exit(0)
	w.Remove("db/password")
	value := w.Renew("web/password")
	p := w.start()
	p.Exit(1)
	if w.exists("secrets", "db.json") {
		t.Error("the file with the deleted value is still there")
	}
	w.await("web.json", value)
	if len(p.Lines("Proven to be gone", "db/password")) != 1 || len(p.Lines("not delivered", "file/web")) > 0 {
		t.Error("it is not told that the proof is complete, or another target is blamed")
	}
}
