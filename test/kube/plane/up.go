// Package plane runs a Kubernetes control plane: it makes the keys, starts
// etcd and kube-apiserver as children, and takes the API server away and back
// on command. It imports nothing of Kubernetes, so that checking it is quick.
package plane

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Up runs a control plane until it is told to end: by a signal, with --stdin
// also by the end of standard input. It prints the path of the administrator's
// kubeconfig once the API server is ready; with --stdin it then answers each
// line of standard input with a line of standard output (see command). The
// children are this same program, with "etcd" or "kube-apiserver" as the first
// argument. With --node a node and what it needs runs too, see Node, and the
// API server is announced when Pods can run. The arguments are the flags; the result is an exit code.
func Up(args []string) int {
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	dir := flags.String("dir", "", "`directory` for the state, new or empty; kept at the end. Empty: a temporary one that goes at the end")
	stdin := flags.Bool("stdin", false, "end with standard input, and take commands from it")
	timeout := flags.Duration("timeout", 2*time.Minute, "how long the API server, and then the node, may take to be ready")
	program := flags.String("node", "", "`program` with kubelet, scheduler, controllers and proxy: then Pods run")
	images := flags.String("images", "", "`directory` with archives of images for the node, syncer.test/pause:1 among them")
	_ = flags.Parse(args) // ends the process on an error
	if flags.NArg() > 0 {
		flags.Usage()
		return 2
	}

	// The children die with the thread that started them (see process.go), so
	// that it has to be one that lasts.
	runtime.LockOSThread()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // a reader of ours may go first; then there is still to clean up
	var lines <-chan string        // nil, thus silent, without --stdin
	if *stdin {
		lines = readLines()
	}

	var with *pods
	if *program != "" {
		with = &pods{program: *program, images: *images}
	}
	if err := serve(*dir, *timeout, with, ended, lines); err != nil {
		fmt.Fprintln(os.Stderr, "kube up:", err)
		return 1
	}
	return 0
}

// readLines is standard input; the channel closes with it.
func readLines() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return lines
}

// serve runs one control plane from its making to its end.
func serve(dir string, timeout time.Duration, with *pods, ended <-chan os.Signal, lines <-chan string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "kube")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p, err := newPlane(dir, timeout, with)
	if err != nil {
		return err
	}
	defer p.kill()
	if err := p.start(); err != nil {
		return err
	}
	return p.converse(ended, lines)
}

// converse says when the plane is ready, and then carries out commands. It
// also waits for the API server here, and not in the command: meanwhile
// whoever asked may have gone.
func (p *plane) converse(ended <-chan os.Signal, lines <-chan string) error {
	announced := false
	for ready := p.awaitReady(p.ready); ; {
		select {
		case <-ended:
			return nil
		case line, open := <-lines:
			if !open {
				return nil
			}
			if ready != nil {
				return fmt.Errorf("command %q came before the API server was ready", line)
			}
			var err error
			if ready, err = p.command(line); ready == nil {
				answer(err)
			}
		case err := <-ready:
			ready = nil
			switch {
			case err != nil && !announced:
				return err
			case err == nil && p.pods != nil && !p.pods.started:
				if err := p.startControllers(); err != nil {
					return err
				}
				ready = p.awaitReady(p.podsReady)
			case announced:
				answer(err)
			default:
				fmt.Println(p.kubeconfig)
				announced = true
			}
		case c := <-p.died:
			if !c.wanted {
				return c.failure()
			}
		}
	}
}

// answer says how a command went: "ok", or "error: " and why.
func answer(err error) {
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println("ok")
}

// command does what a line asks for; a channel is where its outcome will come.
// A stopped API server comes back with its data, since those are etcd's, and
// has come back when it is ready. A paused one keeps its connections and is
// silent.
func (p *plane) command(line string) (<-chan error, error) {
	switch line {
	case "stop-apiserver":
		return nil, p.stopAPIServer()
	case "start-apiserver":
		if err := p.startAPIServer(); err != nil {
			return nil, err
		}
		return p.awaitReady(p.ready), nil
	case "pause-apiserver":
		return nil, p.child("kube-apiserver").pause()
	case "continue-apiserver":
		return nil, p.child("kube-apiserver").resume()
	}
	return nil, fmt.Errorf("there is no command %q; there are stop-apiserver, start-apiserver, pause-apiserver, continue-apiserver", line)
}
