package proctest

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// StartWithin is Start for a process that may have so many bytes of memory. Where
// the test may make cgroups, of either version, the kernel ends the process that
// takes more; elsewhere the caller compares its peak.
func StartWithin(t testing.TB, most int64, cmd *exec.Cmd) *Process {
	t.Helper()
	group := memoryGroup(t, most)
	if group == "" {
		t.Log("no cgroup for memory can be made here: only the peak is compared")
		return Start(t, cmd, nil)
	}
	script := `echo $$ > "$0" && exec "$@"`
	within := exec.Command("/bin/sh", append([]string{"-c", script, filepath.Join(group, "cgroup.procs"), cmd.Path}, cmd.Args[1:]...)...)
	within.Env, within.Dir = cmd.Env, cmd.Dir
	return Start(t, within, nil)
}

// memoryGroup makes a cgroup that lives as long as the test; "" if it may not.
func memoryGroup(t testing.TB, most int64) string {
	for _, version := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group := filepath.Join(version.root, "syncer-test-"+rand.Text())
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // its process has ended by then
		limit, err := os.OpenFile(filepath.Join(group, version.limit), os.O_WRONLY, 0)
		if err != nil { // no cgroup for memory
			continue
		}
		_, err = limit.WriteString(strconv.FormatInt(most, 10))
		if errors.Join(err, limit.Close()) == nil {
			return group
		}
	}
	return ""
}
