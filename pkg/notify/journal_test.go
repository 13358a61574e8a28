package notify_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
)

// provided is an application that has been provided for.
func provided(t *testing.T, dir string) (*app, *[]string) {
	t.Helper()
	a, told := application(t, dir)
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())
	*told = nil
	return a, told
}

func TestWhatAProcessDidNotLiveToTellTheNextOneTells(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	must(t, a.Writing()) // and here it dies

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if want := []string{notify.UpdatedFile}; !slices.Equal(*told, want) {
		t.Errorf("the next process told %v, want %v", *told, want)
	}
	a, told = application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("the one after it told %v again", *told)
	}
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	must(t, a.Writing())
	must(t, a.Writing())
	must(t, a.Updated(t.Context()))

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("told %v again", *told)
	}
}

func TestAWriteThatBeginsAfterAnAnnouncementHasItsOwnMark(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	must(t, a.Writing())
	must(t, a.Updated(t.Context()))
	must(t, a.Writing()) // and here it dies

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 1 {
		t.Errorf("the next process told %v, want the update", *told)
	}
}

func TestTheFirstDeliveryIsNoUpdateAlsoAfterADeath(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	must(t, a.Writing())

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("told %v before the application was provided for", *told)
	}
}

func TestScriptsDoWhatProbesAndHooksNeed(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.InstallScripts())
	unchanged := filepath.Join(dir, "conjur-secrets-unchanged.sh")

	must(t, exec.Command(unchanged).Run())
	must(t, status.SetUpdated())
	if err := exec.Command(unchanged).Run(); err == nil {
		t.Error("the probe succeeds right after an update")
	}
	must(t, exec.Command(unchanged).Run()) // once is enough

	hook := exec.Command(filepath.Join(dir, "conjur-secrets-provided.sh"), dir)
	must(t, hook.Start())
	must(t, status.SetProvided())
	must(t, hook.Wait())
}

func TestScriptsThatAreThereAreNotTouched(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.InstallScripts())
	path := filepath.Join(dir, "conjur-secrets-unchanged.sh")
	before, err := os.Stat(path)
	must(t, err)
	must(t, status.InstallScripts())
	after, err := os.Stat(path)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("an unchanged script was replaced")
	}
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o755)) // in its place
	if err := status.InstallScripts(); err == nil {
		t.Error("a folder was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	must(t, status.InstallScripts())
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 || info.Size() != before.Size() {
		t.Errorf("an old script was not replaced: %v", err)
	}
}
