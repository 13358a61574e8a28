package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running subject.
type process struct {
	cmd     *exec.Cmd
	log     *os.File // its standard output and error
	started time.Time
	exited  chan struct{}
	err     error // result of waiting; valid once exited is closed
	owned   sync.WaitGroup

	mu         sync.Mutex
	peak, anon float64 // peak memory in MiB
}

// errExited means that a subject ended without being stopped.
var errExited = errors.New("the process ended by itself")

func start(w *world, s subject) (*process, error) {
	cmd, err := s.command(w)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	if p.log, err = os.CreateTemp(w.dir, "log-"); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, p.log.Close())
	}
	p.owned.Go(func() {
		p.err = cmd.Wait()
		close(p.exited)
	})
	p.owned.Go(p.sample)
	return p, nil
}

// stopTime bounds the time from a signal to the end of the process.
const stopTime = 10 * time.Second

// stop ends the process. It returns an error if the process ended before or failed.
func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = errExited
	}
	limit := time.NewTimer(stopTime)
	defer limit.Stop()
	select {
	case <-p.exited:
	case <-limit.C:
		err = errors.Join(fmt.Errorf("still there %s after SIGTERM", stopTime), p.cmd.Process.Kill())
	}
	p.owned.Wait()
	return errors.Join(err, p.err, p.log.Close())
}

// during runs f with a context that also ends with the process. It returns an error
// if the process ended.
func (p *process) during(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		select {
		case <-p.exited:
			cancel(errExited)
		case <-done:
		}
	})
	return f(ctx)
}

// lastWords returns the last lines of the process's output, as a suffix for an
// error.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil || len(text) == 0 {
		return ""
	}
	const most = 2000
	return "; its last words:\n" + strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// cpu returns the CPU time of all threads of the process, including ended ones. It
// reads the process's CPU clock, in nanoseconds, from outside
// (clock_getcpuclockid(3)). The ticks of /proc/PID/stat are 10 ms.
func (p *process) cpu() (time.Duration, error) {
	const schedulerClock = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|schedulerClock), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of the process: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// sampleEvery is the interval between memory samples.
const sampleEvery = 25 * time.Millisecond

// sample records the memory until the process ends. The kernel keeps the peak of
// the whole (VmHWM). The peak of the anonymous part (RssAnon) is the highest
// sample.
func (p *process) sample() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err == nil {
			p.mu.Lock()
			p.peak = max(p.peak, statusMiB(string(text), "VmHWM"))
			p.anon = max(p.anon, statusMiB(string(text), "RssAnon"))
			p.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return
		}
	}
}

// highest returns the peak memory so far, and the peak of its anonymous part.
func (p *process) highest() (peak, anon float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak, p.anon
}

// statusMiB returns a field of /proc/PID/status that is in kB, converted to MiB. It
// returns 0 if the field is missing.
func statusMiB(text, field string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kB, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err == nil {
				return kB / 1024
			}
		}
	}
	return 0
}

// tmpfs is the name of a file system in memory.
const tmpfs = "tmpfs"

// fileSystem returns the type of a folder's file system.
func fileSystem(dir string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "unknown"
	}
	switch uint32(stat.Type) {
	case 0x01021994:
		return tmpfs
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683e:
		return "btrfs"
	case 0x794c7630:
		return "overlay"
	}
	return fmt.Sprintf("file system %#x", uint32(stat.Type))
}
