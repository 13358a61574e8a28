package sinks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Users and groups that nothing else has.
const (
	fsGroup  = 22000 // of the volume
	syncer   = 22001 // who writes; in the group
	reader   = 22002 // who reads; in the group
	stranger = 22003 // not in the group
)

// volume is a folder as the kubelet makes one for a Pod with an fsGroup, and a
// copy of the test that each user can run.
func volume(t *testing.T) (dir, binary string) {
	t.Helper()
	base, err := os.MkdirTemp("", "fsgroup")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(base)) })
	must(t, os.Chmod(base, 0o755))
	dir, binary = filepath.Join(base, "volume"), filepath.Join(base, "test")
	must(t, os.Mkdir(dir, 0o700))
	if err := os.Chown(dir, 0, fsGroup); err != nil {
		t.Fatalf("giving a folder to a group (this test needs root): %v", err)
	}
	must(t, os.Chmod(dir, 0o777|os.ModeSetgid))
	self, err := os.Executable()
	must(t, err)
	content, err := os.ReadFile(self)
	must(t, err)
	must(t, os.WriteFile(binary, content, 0o755))
	return dir, binary
}

// as runs a command in a folder as a user, with further groups.
func as(t *testing.T, user uint32, groups []uint32, dir string, env []string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, Groups: groups}}
	text, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

// TestTheFSGroupReads: what a user of the group writes, plain or as a folder, the
// first time and anew, another user of it reads, and nobody else.
func TestTheFSGroupReads(t *testing.T) {
	dir, binary := volume(t)
	for _, text := range []string{"first", "second"} {
		env := []string{childEnv + "=grouped", "TEXT=" + text}
		if out, err := as(t, syncer, []uint32{fsGroup}, dir, env, binary); err != nil {
			t.Fatalf("writing: %v: %s", err, out)
		}
		for _, name := range []string{"plain", "below/plain", "app/user", "app/tls/key"} {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			must(t, err)
			if s := info.Sys().(*syscall.Stat_t); s.Uid != syncer || s.Gid != fsGroup || info.Mode() != 0o440 && info.Mode() != 0o640 {
				t.Errorf("%s is %v of %d:%d, want a mode for the group, of %d:%d", name, info.Mode(), s.Uid, s.Gid, syncer, fsGroup)
			}
			if got, err := as(t, reader, []uint32{fsGroup}, "/", nil, "/bin/cat", path); err != nil || got != text {
				t.Errorf("a user of the group reads %q of %s, %v", got, name, err)
			}
			if got, err := as(t, stranger, nil, "/", nil, "/bin/cat", path); err == nil {
				t.Errorf("a stranger reads %q of %s", got, name)
			}
		}
		if out, err := as(t, reader, []uint32{fsGroup}, dir, nil, "/bin/sh", "-c", "echo x > plain"); err == nil {
			t.Errorf("a user of the group writes: %s", out)
		}
	}
}
