package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/notify"
)

// inTheWay puts a FIFO at a path in one instant, in the place of what is there.
func inTheWay(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(syscall.Mkfifo(path+".fifo", 0o666), os.Rename(path+".fifo", path)); err != nil {
		t.Fatal(err)
	}
}

// awaitRegular waits until a name in the status folder is a file's own.
func (w *world) awaitRegular(name string) {
	w.Helper()
	eventually(w, name, func() bool {
		info, err := os.Lstat(w.Path("status", name))
		return err == nil && info.Mode().IsRegular()
	})
}

// TestNothingThatTheApplicationMakesStopsAnything: a FIFO at every name that
// Syncer reads or writes, before the start and after it, costs what lies at
// that name and nothing else.
func TestNothingThatTheApplicationMakesStopsAnything(t *testing.T) {
	t.Parallel()
	names := []string{
		notify.ProvidedFile, notify.UpdatedFile, notify.AliveFile, notify.RequestedFile, notify.MissingFile,
		"conjur-secrets-provided.sh", "conjur-secrets-unchanged.sh", "conjur-secrets-unchanged.sh.new", ".untold-1-1",
	}
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("web", "template", "web/password")
	w.Group("sub", "json", "sub/password")
	w.Annotations["secret-file-path.sub"] = "sub/db.json"
	w.template("web", `{{ secret "password" }}`)
	for _, name := range names {
		inTheWay(t, w.Path("status", name))
	}
	inTheWay(t, w.Path("secrets", "sub"))
	p := w.start()
	w.await("db.json", w.Value["db/password"])
	w.await("web.out", w.Value["web/password"])
	eventually(t, "a word about it", func() bool { return len(p.Lines("sub", "not a directory")) > 0 })

	if err := os.Remove(w.Path("secrets", "sub")); err != nil {
		t.Fatal(err)
	}
	w.awaitRegular(notify.ProvidedFile) // before that nothing is an update
	w.beat()
	for _, name := range names {
		if name != notify.ProvidedFile {
			inTheWay(t, w.Path("status", name))
		}
	}
	inTheWay(t, w.Path("templates", "web.tpl"))
	inTheWay(t, w.Path("annotations"))
	w.await("db.json", w.Renew("db/password"))
	w.awaitRegular(notify.UpdatedFile)
	w.Renew("web/password")
	eventually(t, "a word about it", func() bool { return len(p.Lines("web", "not a regular file")) > 0 })
	w.await("db.json", w.Renew("db/password"))
	p.Stop()
}

// TestOneShotNeedsNoStatusFolder: where nobody can look at a status folder,
// what is delivered is delivered.
func TestOneShotNeedsNoStatusFolder(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]func(w *world) string{
		"read-only": func(w *world) string {
			w.mount("status", "64k")
			if err := unix.Mount("", w.Path("status"), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			return w.Path("status")
		},
		"missing and not to be made": func(w *world) string {
			w.write(w.Path("file"), "")
			return filepath.Join(w.Path("file"), "status")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oneShot("init", 0)
			w.Group("db", "json", "db/password")
			p := w.start("--status-dir", dir(w))
			p.Exit(0)
			w.await("db.json", w.Value["db/password"])
			if len(p.Lines("Continuing without a status folder")) != 1 {
				t.Error("not a word about the status folder")
			}
		})
	}
}

// TestWaitSaysWhatIsMissing: the hook's output is all that is seen of a
// container whose hook has not ended.
func TestWaitSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/user")
	w.Group("web", "json", "web/password")
	w.Deny("web/password")
	p := w.start()
	eventually(t, "what is missing", func() bool {
		text, _ := os.ReadFile(w.Path("status", notify.MissingFile))
		return strings.Contains(string(text), "web/password")
	})
	for _, args := range [][]string{{"wait", "--timeout", "1s"}, {"probe", "provided"}} {
		err := command(t, append(args, "--status-dir", w.Path("status"))...)
		if err == nil || !strings.Contains(err.Error(), "file/web") || !strings.Contains(err.Error(), "web/password") ||
			strings.Contains(err.Error(), "file/db") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", args, err)
		}
	}
	w.Permit("web/password")
	w.awaitProvided()
	eventually(t, "nothing missing", func() bool { return !w.exists("status", notify.MissingFile) })
	if err := command(t, "wait", "--status-dir", w.Path("status")); err != nil {
		t.Error(err)
	}
	p.Stop()
}

// as has a process run as a user that owns nothing else.
func as(cmd *exec.Cmd, user uint32) *exec.Cmd {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	return cmd
}

// TestAnApplicationOfAnotherUser: in a status folder in memory, which the
// kubelet makes sticky, neither user can delete what the other has written.
// Probes succeed again after each update all the same, and a request is taken
// up once for each time it is made, at most once a second.
func TestAnApplicationOfAnotherUser(t *testing.T) {
	t.Parallel()
	const own, application = 777, 12345
	w := newWorld(t)
	w.mount("status", "256k")
	w.Group("db", "json", "db/password")
	if err := errors.Join(os.Chmod(w.Path("status"), 0o777|os.ModeSticky), os.Mkdir(w.Path("bin"), 0o755),
		os.Chmod(filepath.Dir(w.Dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	// By a process of its own: a program cannot be started while a fork of
	// another test has it open for writing.
	spawn(t, nil, "install", w.Path("bin")).Exit(0)
	p := w.startBy(func(cmd *exec.Cmd) error {
		cmd.Path = w.Path("bin", "syncer")
		return errors.Join(os.Chown(w.Path("annotations"), own, own), os.Chown(w.Path("secrets"), own, own), as(cmd, own).Start())
	})
	w.awaitProvided()
	run := func(name string, args ...string) error {
		cmd := as(exec.Command(name, args...), application)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), asCommand + "=1"}
		return cmd.Run()
	}
	probes := map[string]func() error{
		"command": func() error {
			return run(w.Path("bin", "syncer"), "probe", "unchanged", "--status-dir", w.Path("status"))
		},
		"script": func() error { return run(w.Path("status", "conjur-secrets-unchanged.sh")) },
	}
	for name, probe := range probes {
		if err := probe(); err != nil {
			t.Errorf("%s, with nothing updated: %v", name, err)
		}
		w.await("db.json", w.Renew("db/password"))
		eventually(t, name+" fails after the update", func() bool { return probe() != nil })
		for range 3 {
			if err := probe(); err != nil {
				t.Errorf("%s, after the restart: %v", name, err)
			}
		}
	}

	request := ": >" + w.Path("status", notify.RequestedFile)
	asked := func() int { return len(p.Lines("Restoring the files")) }
	begin := time.Now()
	eventually(t, "requests taken up", func() bool {
		if err := run("sh", "-c", request); err != nil {
			t.Fatal(err)
		}
		return asked() >= 3
	})
	if took := time.Since(begin); took < time.Second {
		t.Errorf("%d requests were taken up within %v", asked(), took)
	}
	if taken := w.exists("status", notify.RequestedFile); !taken {
		t.Error("Syncer could delete the request, so the folder is not sticky")
	}
	p.Stop()
}
