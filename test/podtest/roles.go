//go:build linux

package podtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// The roles of the test binary, as variables of its environment.
const (
	role      = "PODTEST_ROLE"
	rolePause = "pause" // argv: the actor, an empty folder
	roleEnter = "enter" // argv: the program to be, its argv
	// inContainer is the Container to enter, in JSON.
	inContainer = "PODTEST_CONTAINER"
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
