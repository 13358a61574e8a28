//go:build long

package release

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestTheSameCommitMakesTheSameRelease: folder, user, umask, time zone, language, the
// compiler's cache, an earlier build, files that Git ignores, and settings of Git and Go
// do not matter.
func TestTheSameCommitMakesTheSameRelease(t *testing.T) {
	t.Parallel()
	repo, version := clone(t)
	// The module cache then knows the commit by another version.
	run(t, repo, nil, "go", "build", "-buildvcs=true", "-o", os.DevNull, "./test/run")
	other := filepath.Join(t.TempDir(), "an other folder")
	run(t, "", nil, "git", "clone", "-q", repo, other)
	write(t, filepath.Join(other, ".git/info/exclude"), []byte("ignored.go\n"))
	write(t, filepath.Join(other, "cmd/syncer/ignored.go"), []byte("does not compile\n"))
	key := newKey(t)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two folders", "two")
	run(t, "", nil, tool, arguments(repo, version, one, key)...)

	bystander, _ := clone(t)
	cmd := exec.Command("sh", "-c", `umask 077; exec "$@"`, "sh", tool)
	cmd.Args = append(cmd.Args, arguments(other, version, two, key)...)
	cmd.Env = slices.Concat(os.Environ(), otherGo(t), otherGit(t, bystander),
		[]string{"TZ=Asia/Kathmandu", "LC_ALL=tr_TR.UTF-8", "USER=other", "LOGNAME=other"})
	cmd.SysProcAttr = otherUser()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range names(t, one) {
		if !bytes.Equal(read(t, one, name), read(t, two, name)) {
			t.Errorf("%s: differs between two builds", name)
		}
	}
	if a, b := names(t, one), names(t, two); !slices.Equal(a, b) {
		t.Errorf("the files differ: %q, %q", a, b)
	}
	if out := run(t, bystander, nil, "git", "tag"); strings.Contains(out, "v"+version) {
		t.Errorf("the release changed the repository that GIT_DIR names: tags %s", out)
	}
}

// otherGo are settings of the go command that lead to other bytes, and others that say
// where modules are. The latter must apply: nothing is downloaded.
func otherGo(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "env")
	cache := strings.TrimSpace(run(t, "", nil, "go", "env", "GOMODCACHE"))
	write(t, file, []byte("GOMODCACHE="+cache+"\nGOPROXY=off\nGOAMD64=v3\nGOFLAGS=-tags=other\n"))
	return []string{"GOENV=" + file, "GOMODCACHE=", "GOPROXY=", "GOPATH=" + t.TempDir(), "GOCACHE=" + t.TempDir(),
		"GOFLAGS=-mod=mod", "GOAMD64=v2", "GOEXPERIMENT=greenteagc"}
}

// otherGit are settings of Git that change files, run hooks, sign tags, and name
// another repository.
func otherGit(t *testing.T, repo string) []string {
	t.Helper()
	dir := t.TempDir()
	hook := filepath.Join(dir, "hooks", "post-checkout")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, hook, []byte("#!/bin/sh\nexit 1\n"))
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config"), []byte("[core]\n\tautocrlf = true\n\thooksPath = "+filepath.Dir(hook)+
		"\n[tag]\n\tgpgSign = true\n[status]\n\tshowUntrackedFiles = no\n"))
	return []string{"GIT_CONFIG_GLOBAL=" + filepath.Join(dir, "config"), "GIT_DIR=" + filepath.Join(repo, ".git"), "GIT_WORK_TREE=" + repo}
}

// otherUser makes a process believe that it is somebody else, with the same rights.
func otherUser() *syscall.SysProcAttr {
	const other = 12345
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: other, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: other, HostID: os.Getgid(), Size: 1}},
	}
}
