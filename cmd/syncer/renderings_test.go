package main

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A process that died while it rendered a target brings the others up to date
// before it renders that one again.
func TestTheTargetThatAProcessDiedOfIsRenderedLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("a", "template", "a/password")
	w.Group("b", "template", "b/password")
	w.template("a", `{{ range 240000 }}{{ end }}{{ secret "password" }}`)
	w.template("b", `{{ secret "password" }}`)
	marks := func() int {
		found, _ := filepath.Glob(w.Path("status", ".rendering-*"))
		return len(found)
	}
	p := w.start()
	eventually(t, "the mark of a target that is rendered", func() bool { return marks() == 1 })
	p.Signal(syscall.SIGKILL)
	p.ExitCode()
	if marks() != 1 || w.exists("secrets", "a.out") || w.exists("secrets", "b.out") {
		t.Fatal("it was not killed while it rendered the first target")
	}
	p = w.start()
	eventually(t, "the other target", func() bool { return w.exists("secrets", "b.out") })
	if w.exists("secrets", "a.out") {
		t.Error("what the process had died of was rendered first")
	}
	w.await("a.out", w.Value["a/password"])
	w.awaitProvided()
	if marks() > 0 {
		t.Error("a mark is left behind")
	}
	p.Stop()
}
