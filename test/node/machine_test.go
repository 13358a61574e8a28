//go:build node

package node

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// machine contains everything that a node could leave behind.
type machine map[string]bool

// look finds the mounts, cgroups and processes that contain the name of a directory, because
// others on the machine have theirs. It also finds the network namespaces of all Pods.
func look(dir string) (machine, error) {
	m, name := machine{}, filepath.Base(dir)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, name) {
			m["mount "+strings.Fields(line)[4]] = true
		}
	}
	namespaces, err := filepath.Glob("/run/netns/cni-*")
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		m["network namespace "+namespace] = true
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, name) {
			m["cgroup "+path] = true
		}
		return nil
	})
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		// The node's have it in their arguments or environment, those of Pods in
		// their cgroup. What cannot be read has ended.
		for _, file := range []string{"cmdline", "environ", "cgroup"} {
			if text, _ := os.ReadFile(filepath.Join(process, file)); strings.Contains(string(text), name) {
				command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
				m["process "+process+" "+strings.ReplaceAll(string(command), "\x00", " ")] = true
				break
			}
		}
	}
	return m, nil
}

// compare returns an error if something of the node remains. It waits for objects that are
// about to end.
func (before machine) compare(dir string) error {
	var left []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		after, err := look(dir)
		if err != nil {
			return err
		}
		left = nil
		for what := range after {
			if !before[what] {
				left = append(left, what)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			slices.Sort(left)
			return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
	}
}
