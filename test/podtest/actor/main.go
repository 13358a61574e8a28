//go:build linux

// Command actor plays the processes of a Pod: /pause, when that is its name,
// and else an application that tells on its standard output which signals it
// gets. With the name headless its first thread ends, as that of some programs
// does, and it seems to be a zombie.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread() // the first, on which main begins
	signals := make(chan os.Signal, 100)
	signal.Notify(signals)
	if os.Args[0] == "/pause" {
		pause(signals)
	}
	if filepath.Base(os.Args[0]) == "headless" {
		go tell(signals)
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of this thread only
	}
	tell(signals)
}

func tell(signals <-chan os.Signal) {
	fmt.Println("ready")
	for s := range signals {
		if number := s.(syscall.Signal); number != unix.SIGURG { // the Go runtime's own
			fmt.Println(unix.SignalName(number))
		}
	}
}

// pause reaps orphans, and ends on any other signal, so that one that should
// not have come ends the Pod.
func pause(signals <-chan os.Signal) {
	for s := range signals {
		switch s {
		case unix.SIGURG:
		case unix.SIGCHLD:
			for pid := 1; pid > 0; {
				pid, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
			}
		default:
			os.Exit(3)
		}
	}
}
