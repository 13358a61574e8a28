package notify_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
)

func renderCrashes(t *testing.T, dir string) *notify.RenderCrashes {
	t.Helper()
	r, err := notify.OpenStatus(dir).NewRenderCrashes()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each process that dies while it renders a target doubles the delay of the
// next, and one that gets through ends that.
func TestRenderCrashesRememberWhatProcessesDiedOf(t *testing.T) {
	dir := t.TempDir()
	want := time.Duration(0)
	for range 8 {
		r := renderCrashes(t, dir)
		if got := r.Delay("secret/a/b"); got != want {
			t.Errorf("the delay is %v, want %v", got, want)
		}
		if got := r.Delay("secret/a/c"); got != 0 {
			t.Errorf("another target has the delay %v", got)
		}
		r.Begin("secret/a/c")()
		r.Begin("secret/a/b") // and dies
		want = min(max(2*want, 10*time.Second), 320*time.Second)
	}
	r := renderCrashes(t, dir)
	r.Begin("secret/a/b")()
	if r.Delay("secret/a/b") != 0 || renderCrashes(t, dir).Delay("secret/a/b") != 0 {
		t.Error("the delay stays after the target was rendered")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever an application puts into the folder is no mark, or none of weight.
func TestRenderCrashesOfAFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	renderCrashes(t, dir).Begin("file/a")
	marks, _ := filepath.Glob(filepath.Join(dir, ".rendering-*"))
	if len(marks) != 1 {
		t.Fatalf("marks %q", marks)
	}
	base := marks[0][:len(marks[0])-len("1")]
	for _, name := range []string{base + "99", base + "-1", base + "01", base + "x", base, filepath.Join(dir, ".rendering-"), filepath.Join(dir, ".rendering-x-3")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := renderCrashes(t, dir).Delay("file/a"); got != 10*time.Second {
		t.Errorf("the delay is %v", got)
	}
	if _, err := notify.OpenStatus(filepath.Join(dir, "none")).NewRenderCrashes(); err == nil {
		t.Error("a folder that is not there is no error")
	}
	var none *notify.RenderCrashes
	none.Begin("file/a")()
	if none.Delay("file/a") != 0 {
		t.Error("nothing remembers something")
	}
}
