//go:build node

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// missing says what the machine lacks.
func missing() (lacks []error) {
	if os.Getuid() != 0 {
		lacks = append(lacks, errors.New("these tests need root"))
	}
	for _, name := range []string{programVariable, "SYNCER_KUBE"} {
		if os.Getenv(name) == "" {
			lacks = append(lacks, fmt.Errorf("%s is not set: run \"make test-node\"", name))
		}
	}
	var packages []string
	for program, name := range map[string]string{
		"containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables",
		"/usr/lib/cni/ptp": "containernetworking-plugins", "/bin/busybox": "busybox-static",
	} {
		if _, err := exec.LookPath(program); err != nil && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	if slices.Sort(packages); packages != nil {
		lacks = append(lacks, fmt.Errorf("packages are missing; on Debian: apt-get install --no-install-recommends %s", strings.Join(packages, " ")))
	}
	return lacks
}

// machine is what a node could leave behind.
type machine map[string]bool

// look finds the mounts of this process, all cgroups, all processes of containerd
// or in other network namespaces, and the names of such namespaces.
func look() (machine, error) {
	m := machine{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		m["mount "+strings.Fields(line)[4]] = true
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			m["cgroup "+path] = true
		}
		return nil
	})
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if net, err := os.Readlink(process + "/ns/net"); err == nil && net != own {
			command, _ := os.ReadFile(process + "/cmdline")
			m["process "+process+" "+net+" "+strings.ReplaceAll(string(command), "\x00", " ")] = true
		}
		if command, err := os.ReadFile(process + "/cmdline"); err == nil && strings.Contains(string(command), "containerd") {
			m["process "+process+" "+strings.ReplaceAll(string(command), "\x00", " ")] = true
		}
	}
	namespaces, _ := filepath.Glob("/run/netns/*")
	for _, name := range namespaces {
		m["network namespace "+name] = true
	}
	return m, nil
}

// compare returns an error when something of the node has stayed, and waits
// for what is about to end.
func (before machine) compare(dir string) error {
	var left []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		after, err := look()
		if err != nil {
			return err
		}
		left = nil
		for what := range after {
			if !before[what] {
				left = append(left, what)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "s")); err == nil {
			left = append(left, "directory "+filepath.Join(dir, "s"))
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
