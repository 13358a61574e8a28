package main

import (
	"os"
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
	written := func() bool { return w.exists("secrets", "a.out") || w.exists("secrets", "b.out") }
	for { // a busy machine may look too late
		p := w.start()
		eventually(t, "the mark of a target that is rendered", func() bool { return marks() == 1 || written() })
		p.Signal(syscall.SIGKILL)
		p.ExitCode()
		if marks() == 1 && !written() {
			break
		}
		for _, folder := range []string{"secrets", "status"} {
			left, _ := filepath.Glob(w.Path(folder, "*"))
			for _, path := range left {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	p := w.start()
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
