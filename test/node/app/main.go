//go:build linux

// Command app plays what runs in Pods beside Syncer. As /pause it holds a Pod's
// namespaces; else its first argument says what it does:
//
//	app run FILE…     print what the files are at the start, then each signal; end with TERM, or by a crash
//	app watch FILE    the same, and read the file whenever it is another; print what is not whole JSON
//	app crash         make the application in the same container crash
//	app read FILE…    print files
//	app remove FILE…  remove files
//	app now           print when it started, and then do as run does
//	app env NAME…     print variables of the environment
//	app hold NAME…    print variables of the environment, and then do as run does
//	app spin          keep one processor busy
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if os.Args[0] == "/pause" {
		pause()
	}
	if len(os.Args) < 2 {
		os.Args = append(os.Args, "run")
	}
	args := os.Args[2:]
	switch os.Args[1] {
	case "run":
		run(args, nil)
	case "watch":
		run(args, time.Tick(time.Millisecond))
	case "crash":
		check(syscall.Kill(1, syscall.SIGUSR1))
	case "read":
		for _, path := range args {
			text, err := os.ReadFile(path)
			check(err)
			os.Stdout.Write(text)
		}
	case "remove":
		for _, path := range args {
			check(os.Remove(path))
		}
	case "now":
		fmt.Println(time.Now().UnixNano())
		run(nil, nil)
	case "env", "hold":
		for _, name := range args {
			fmt.Println(os.Getenv(name))
		}
		if os.Args[1] == "hold" {
			run(nil, nil)
		}
	case "spin":
		for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the application: tick says when to look at the first file again.
func run(files []string, tick <-chan time.Time) {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Printf("start: %v\n", err)
		} else {
			fmt.Printf("start: %s: %q\n", path, text)
		}
	}
	if len(files) > 0 {
		fmt.Println("started")
	}
	var last os.FileInfo
	for {
		select {
		case s := <-signals:
			switch s {
			case unix.SIGURG: // the Go runtime's own
			case unix.SIGUSR1:
				os.Exit(3)
			default:
				fmt.Println("signal:", unix.SignalName(s.(syscall.Signal)))
				if s == unix.SIGTERM {
					return
				}
			}
		case <-tick:
			now, err := os.Stat(files[0])
			if err == nil && last != nil && os.SameFile(now, last) && now.Size() == last.Size() && now.ModTime().Equal(last.ModTime()) {
				continue
			}
			last = now
			if text, err := os.ReadFile(files[0]); err != nil {
				fmt.Println("torn:", err)
			} else if !json.Valid(text) {
				fmt.Printf("torn: %d bytes\n", len(text))
			}
		}
	}
}

// pause reaps orphans until it is told to end.
func pause() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	for s := range signals {
		if s != unix.SIGCHLD {
			os.Exit(0)
		}
		for pid := 1; pid > 0; {
			pid, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
		}
	}
}
