//go:build linux

package podtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the test binary is, when it is in the environment.
const (
	role      = "PODTEST_ROLE"
	rolePause = "pause" // argv: the actor, an empty folder
	roleEnter = "enter" // argv: the program to be, its argv
	asUser    = "PODTEST_USER"
)

// Main lets the test binary be a process of a Pod, when it was started as one;
// it does not return then. It must be the first thing in TestMain.
func Main() {
	var err error
	switch os.Getenv(role) {
	case "":
		return
	case rolePause:
		err = bePause(os.Args[1], os.Args[2])
	case roleEnter:
		err = enter(os.Args[1], os.Args[2:])
	}
	fmt.Fprintf(os.Stderr, "podtest: %v\n", err)
	os.Exit(1)
}

// bePause becomes /pause, with a root folder in which there is nothing else.
func bePause(actor, root string) error {
	program, err := os.ReadFile(actor)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", root, "tmpfs", 0, "")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "pause"), program, 0o755); err != nil {
		return err
	}
	if err := errors.Join(unix.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""),
		unix.Chroot("."), unix.Chdir("/")); err != nil {
		return err
	}
	return syscall.Exec("/pause", []string{"/pause"}, nil)
}

// enter gives itself a /proc of the namespace, becomes the user, and then the
// program.
func enter(program string, args []string) error {
	user, err := strconv.Atoi(os.Getenv(asUser))
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return err
	}
	if user != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(user), syscall.Setuid(user)); err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "PODTEST_") })
	return syscall.Exec(program, args, env)
}
