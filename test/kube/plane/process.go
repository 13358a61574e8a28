package plane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// part is what to run: a program with the part's name as its first argument.
type part struct {
	program    string // empty: this one
	name       string
	namespaces uintptr // new ones, as for clone(2)
	args       []string
}

// child is a part that was started.
type child struct {
	name   string
	log    string // file with its output
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	wanted bool          // its end is; the main goroutine's
}

// run starts a part, with its output appended to name.log in the plane's
// directory. The child is sent to died when it ends.
//
// The kernel kills the child when the calling thread ends: nothing stays
// behind, however this process dies.
func (p *plane) run(what part) error {
	program := what.program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		program = self
	}
	c := &child{name: what.name, log: p.path(what.name + ".log"), done: make(chan struct{})}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(program, append([]string{what.name}, what.args...)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	// A group of its own keeps a terminal's ^C from it: we end it ourselves.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Cloneflags: what.namespaces}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", what.name, err)
	}
	p.children = append(p.children, c)
	go func() {
		_ = c.cmd.Wait() // failure reads the state
		close(c.done)
		p.died <- c
	}()
	return nil
}

// kill ends the child at once and waits for it. Its data are either thrown
// away or in etcd, so there is nothing that it should finish.
func (c *child) kill() {
	c.wanted = true
	_ = c.cmd.Process.Kill()
	<-c.done
}

// running reports whether the child is there.
func (c *child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// pause stops the child's threads and returns when they stand still.
func (c *child) pause() error {
	if !c.running() {
		return fmt.Errorf("%s is not running", c.name)
	}
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if stopped, err := c.stopped(); stopped || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s did not stop within a minute of SIGSTOP", c.name)
}

// stopped looks at all threads: the signal is sent to the process, and each
// of its threads stops when it is next scheduled.
func (c *child) stopped() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// proc(5): pid (comm) state …, and comm may hold a parenthesis.
		if !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false, nil
		}
	}
	return len(threads) > 0, nil
}

// resume lets a paused child go on.
func (c *child) resume() error {
	if !c.running() {
		return fmt.Errorf("%s is not running", c.name)
	}
	return c.cmd.Process.Signal(syscall.SIGCONT)
}

// failure is the error of a child that ended unasked, with its last words.
func (c *child) failure() error {
	return fmt.Errorf("%s ended: %v\n%s", c.name, c.cmd.ProcessState, c.lastWords())
}

func (c *child) lastWords() string {
	const enough = 4 << 10
	log, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-enough):])
}
