package notify_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
)

// another is a user that neither runs the test nor owns anything.
const another = 12345

// asAnother runs a command as another user; this needs root.
func asAnother(t *testing.T, name string, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: another, Gid: another}}
	text, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatalf("running as another user (this test needs root): %v", err)
	}
	return string(text), err == nil
}

// sticky makes a status folder as the kubelet makes a volume in memory, which
// all users can reach.
func sticky(t *testing.T) (*notify.Status, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "status")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o777|os.ModeSticky))
	status, err := notify.NewStatus(dir)
	must(t, err)
	return status, dir
}

// all writes everything that is ever written into the folder.
func all(t *testing.T, a *app, status *notify.Status) []error {
	t.Helper()
	_, writing := a.Writing()
	errs := []error{status.InstallScripts(), a.Recover(t.Context()), a.SayMissing(), writing}
	a.Delivered("file/a")
	a.Delivered("file/b")
	_, err := status.Beat()
	return append(errs, a.Provided(), a.Updated(t.Context()), status.SetUpdated(), err)
}

// written are the names that Syncer writes in the status folder.
var written = []string{
	notify.ProvidedFile, notify.UpdatedFile, notify.AliveFile, notify.MissingFile,
	"conjur-secrets-provided.sh", "conjur-secrets-unchanged.sh",
	"conjur-secrets-provided.sh.new", "conjur-secrets-unchanged.sh.new", ".boot",
}

// Whatever a name of Syncer's leads to stays as it is.
func TestNoLinkInTheStatusFolderIsFollowed(t *testing.T) {
	for _, name := range written {
		for _, kind := range []string{"symlink", "relative symlink", "hard link", "dangling symlink"} {
			dir, outside := t.TempDir(), t.TempDir()
			secret, free := filepath.Join(outside, "secret"), filepath.Join(outside, "free")
			must(t, os.WriteFile(secret, []byte("text"), 0o600))
			at := filepath.Join(dir, name)
			switch kind {
			case "symlink":
				must(t, os.Symlink(secret, at))
			case "relative symlink":
				must(t, os.WriteFile(filepath.Join(dir, "own"), []byte("text"), 0o600))
				must(t, os.Symlink("own", at))
				secret = filepath.Join(dir, "own")
			case "hard link":
				must(t, os.Link(secret, at))
			case "dangling symlink":
				must(t, os.Symlink(free, at))
			}
			a, _ := application(t, dir)
			for i, err := range all(t, a, notify.OpenStatus(dir)) {
				if err != nil {
					t.Errorf("%s at %s: call %d: %v", kind, name, i, err)
				}
			}
			text, err := os.ReadFile(secret)
			info, statErr := os.Stat(secret)
			if err != nil || statErr != nil || string(text) != "text" || info.Mode() != 0o600 {
				t.Errorf("%s at %s: the file that it led to is %q with %v (%v, %v)", kind, name, text, info, err, statErr)
			}
			if _, err := os.Lstat(free); err == nil {
				t.Errorf("%s at %s: a file was made where it led to", kind, name)
			}
		}
	}
}

// A FIFO is waited for by nobody, and replaced; a folder is reported.
func TestNothingInTheStatusFolderIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range written {
		must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o666))
	}
	must(t, syscall.Mkfifo(filepath.Join(dir, ".untold-1-1"), 0o666))
	a, told := application(t, dir)
	for i, err := range all(t, a, notify.OpenStatus(dir)) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(*told) != 2 {
		t.Errorf("told %v", *told)
	}
	if ok, err := notify.OpenStatus(dir).Provided(); err != nil || !ok {
		t.Errorf("provided: %v, %v", ok, err)
	}

	dir = t.TempDir()
	for _, name := range written {
		must(t, os.MkdirAll(filepath.Join(dir, name, "x"), 0o755))
	}
	a, _ = application(t, dir)
	for i, err := range all(t, a, notify.OpenStatus(dir)) {
		if i != 1 && i != 3 && i != 5 && i != 7 && err == nil { // what writes to no such name
			t.Errorf("with folders in the way call %d succeeds", i)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".syncer-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// In a sticky folder an application of another user cannot delete what Syncer
// wrote, and a probe of it fails once for each update all the same.
func TestAnotherUsersProbeFailsOnceForEachUpdate(t *testing.T) {
	shells := 0
	for _, shell := range []string{"dash", "bash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		shells++
		t.Run(shell, func(t *testing.T) {
			status, dir := sticky(t)
			must(t, status.InstallScripts())
			command := []string{filepath.Join(dir, "conjur-secrets-unchanged.sh")}
			if shell == "busybox" {
				command = append([]string{"sh"}, command...)
			}
			probe := func(what string, want bool) {
				t.Helper()
				if output, ok := asAnother(t, path, command...); ok != want || output != "" {
					t.Errorf("%s: the probe succeeds: %v, want %v; it prints %q", what, ok, want, output)
				}
			}
			probe("nothing updated", true)
			for range 3 { // within one second
				must(t, status.SetUpdated())
				probe("updated", false)
				probe("an update counts once", true)
				probe("an update counts once", true)
			}
			must(t, os.Remove(filepath.Join(dir, notify.UpdatedFile)))
			probe("taken by another container", true)
			must(t, status.SetUpdated())
			probe("updated", false)
			probe("an update counts once", true)
			if left, _ := filepath.Glob(filepath.Join(dir, ".syncer-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	if shells == 0 {
		t.Error("there is no shell to run the script with")
	}
}

// Syncer takes up another user's request that it cannot delete, once.
func TestAnotherUsersRequestIsTakenOnce(t *testing.T) {
	_, dir := sticky(t)
	status := notify.OpenStatus(dir)
	take := func() (got string) {
		onFilesOf(t, another, func() { taken, err := status.TakeRequested(); got = fmt.Sprint(taken, " ", err) })
		return got
	}
	request := filepath.Join(dir, notify.RequestedFile)
	if got := take(); got != "false <nil>" {
		t.Errorf("without a request: %s", got)
	}
	for i := range 2 {
		must(t, os.WriteFile(request, nil, 0o644))
		must(t, os.Chtimes(request, time.Time{}, time.Now().Add(time.Duration(i)*time.Second)))
		if got := take(); got != "true <nil>" {
			t.Errorf("request %d: %s", i, got)
		}
		if got := take(); got != "false <nil>" {
			t.Errorf("request %d once more: %s", i, got)
		}
	}
}

// A hook that waits for ever would make a Pod that cannot be deleted.
func TestTheHookGivesUpAndSaysWhatIsMissing(t *testing.T) {
	status, dir := sticky(t)
	must(t, status.InstallScripts())
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\n"), 0o755)) // time flies
	hook := func() string {
		cmd := exec.Command(filepath.Join(dir, "conjur-secrets-provided.sh"), dir)
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		text, err := cmd.CombinedOutput()
		if err == nil {
			t.Error("the hook succeeds")
		}
		return string(text)
	}
	if got := hook(); !strings.HasSuffix(got, "see the log of Syncer\n") {
		t.Errorf("it says %q", got)
	}
	a, _ := application(t, dir)
	a.Delivered("file/a")
	a.Failed("file/b", errors.New("no value\nfor db/password"))
	must(t, a.Provided())
	if got := hook(); !strings.HasSuffix(got, "\nfile/b: no value; for db/password\n") || strings.Contains(got, "file/a") {
		t.Errorf("it says %q", got)
	}
}
