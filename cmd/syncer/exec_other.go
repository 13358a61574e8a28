//go:build !linux

package main

import "errors"

// hide fails: only Linux lets a process keep its environment from other processes of the
// same user.
func hide() error {
	return errors.New("exec runs on Linux only: no other system hides the secrets in syncer's environment from the command")
}
