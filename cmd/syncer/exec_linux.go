package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hide protects the environment and the memory of this process, with its credentials and
// the values. Other processes of the same user, such as the command, cannot read them;
// see proc(5) and ptrace(2). Root still can.
func hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide the memory of syncer from the command: %w", err)
	}
	return nil
}
