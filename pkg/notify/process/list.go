// Package process finds the processes of an application through /proc and sends them
// signals. It also runs a command as a child process of Syncer.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// entry is one process in /proc; see proc(5). Fields that may not be read, because the
// process belongs to another user, are empty.
type entry struct {
	pid, parent int
	started     uint64 // ticks since the machine's start; identifies the process
	user        int    // effective user id
	argument    string // argv[0], as set by the process
	executable  string // path in the process's container
	own         bool   // it runs the same file as this process
	kernel      bool   // a kernel thread
	dead        bool   // a zombie
	headless    bool   // its first thread has ended and looks like a zombie, but others live
}

// errGone means that a process has ended.
var errGone = errors.New("the process has ended")

// listProcesses reads all processes below proc, which is /proc. It omits processes that
// end in the meantime.
func listProcesses(proc string) ([]entry, error) {
	self, err := os.Stat(filepath.Join(proc, "self", "exe"))
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue // not a process
		}
		e, err := readProcess(proc, pid, self)
		switch {
		case errors.Is(err, errGone):
		case err != nil:
			return nil, err
		default:
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.pid - b.pid })
	return entries, nil
}

// readProcess reads one process. self is the executable of this process.
func readProcess(proc string, pid int, self fs.FileInfo) (entry, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	e := entry{pid: pid}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return e, errGone
	}
	if err := e.parseStat(string(stat)); err != nil {
		return e, fmt.Errorf("%s: %w", dir, err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return e, errGone
	}
	if e.user, err = userOf(string(status)); err != nil {
		return e, fmt.Errorf("%s: %w", dir, err)
	}
	if e.headless {
		dir = liveThread(dir, pid)
	}
	if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
		first, _, _ := bytes.Cut(line, []byte{0})
		e.argument = string(first)
	}
	exe := filepath.Join(dir, "exe")
	if path, err := os.Readlink(exe); err == nil {
		e.executable = strings.TrimSuffix(path, " (deleted)")
	}
	if runs, err := os.Stat(exe); err == nil {
		e.own = os.SameFile(runs, self)
	}
	return e, nil
}

// liveThread returns the folder of a live thread of a process whose first thread has
// ended. That folder holds the information that is missing in the folder of the process.
func liveThread(dir string, pid int) string {
	threads, _ := os.ReadDir(filepath.Join(dir, "task")) // none: the process has ended
	for _, thread := range threads {
		if thread.Name() != strconv.Itoa(pid) {
			return filepath.Join(dir, "task", thread.Name())
		}
	}
	return dir
}

// kernelThread is the flag PF_KTHREAD in /proc/PID/stat.
const kernelThread = 0x00200000

// parseStat extracts state, parent, flags, threads and start time from /proc/PID/stat.
// The second field is the command in parentheses and may contain anything.
func (e *entry) parseStat(stat string) error {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return errors.New("stat has no command")
	}
	fields := strings.Fields(stat[end+1:]) // from the third field on
	if len(fields) < 20 {
		return errors.New("stat has too few fields")
	}
	parent, badParent := strconv.Atoi(fields[1])
	flags, badFlags := strconv.ParseUint(fields[6], 10, 64)
	threads, badThreads := strconv.Atoi(fields[17])
	started, badStart := strconv.ParseUint(fields[19], 10, 64)
	if err := errors.Join(badParent, badFlags, badThreads, badStart); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	e.started = started
	e.parent, e.kernel = parent, flags&kernelThread != 0
	ended := fields[0] == "Z" || fields[0] == "X" // the first thread has ended
	e.dead, e.headless = ended && threads <= 1, ended && threads > 1
	return nil
}

// userOf returns the effective user id in /proc/PID/status.
func userOf(status string) (int, error) {
	for line := range strings.Lines(status) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			if fields := strings.Fields(ids); len(fields) > 1 {
				return strconv.Atoi(fields[1])
			}
		}
	}
	return 0, errors.New("status has no user id")
}
