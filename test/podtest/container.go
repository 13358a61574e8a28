//go:build linux

package podtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Container describes the root folder, the mounts and the user of a process. The zero value
// is the root user in the machine's own root folder.
type Container struct {
	Root        string  // of the container; empty means the machine's
	Mounts      []Mount // parents first; only with a Root
	User, Group int
}

// Mount makes a file or folder of the machine appear in a container.
type Mount struct {
	Source, Path string
	ReadOnly     bool
}

// Start starts a command as the first process of a container without a shared process
// namespace. The command is looked up in the PATH of its environment, in the container.
// Containers with the same root folder and mounts see the same files, so one can be an exec
// in another. The caller must wait for the command.
func (c Container) Start(cmd *exec.Cmd) error {
	asEntrant(cmd, c, unix.CLONE_NEWPID)
	return cmd.Start()
}

// asEntrant has a command begin in the role that enters a container.
func asEntrant(cmd *exec.Cmd, c Container, namespaces uintptr) {
	where, err := json.Marshal(c)
	if err != nil {
		panic(err) // it holds texts and numbers only
	}
	cmd.Args = append([]string{os.Args[0], cmd.Path}, cmd.Args...)
	cmd.Path = os.Args[0]
	cmd.Env = append(cmd.Env, role+"="+roleEnter, inContainer+"="+string(where))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces | unix.CLONE_NEWNS}
}

// enter becomes the user in the container, and then the program.
func enter(program string, args []string) error {
	var c Container
	if err := json.Unmarshal([]byte(os.Getenv(inContainer)), &c); err != nil {
		return err
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), c.changeRoot()); err != nil {
		return err
	}
	if c.User != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(c.Group), syscall.Setuid(c.User)); err != nil {
			return err
		}
	}
	if !strings.Contains(program, "/") {
		path, err := exec.LookPath(program)
		if err != nil {
			return err
		}
		program = path
	}
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PODTEST_") {
			env = append(env, entry)
		}
	}
	return syscall.Exec(program, args, env)
}

// changeRoot makes the container's root folder this process's, with a /proc of
// the process namespace.
func (c Container) changeRoot() error {
	if c.Root == "" {
		return unix.Mount("proc", "/proc", "proc", 0, "")
	}
	for _, m := range c.Mounts {
		if err := m.in(c.Root); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.Source, m.Path, err)
		}
	}
	proc := filepath.Join(c.Root, "proc")
	return errors.Join(os.MkdirAll(proc, 0o755), unix.Mount("proc", proc, "proc", 0, ""), unix.Chroot(c.Root), unix.Chdir("/"))
}

// in mounts it below a root folder, as a runtime does: what is missing of the
// path is made.
func (m Mount) in(root string) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	path := filepath.Join(root, m.Path)
	if info.IsDir() {
		err = os.MkdirAll(path, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err == nil {
		err = unix.Mount(m.Source, path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err == nil && m.ReadOnly {
		err = unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	return err
}
