package kubetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// process is a running "kube up --stdin". Lines go to it and are answered one
// by one; it ends with its standard input, thus also with us.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *os.File

	turn chan struct{} // holds one token while nobody talks
	last string        // command that was carried out; belongs to whoever has the token
}

// startProcess returns when the control plane is ready, with the path of its
// kubeconfig.
func startProcess(program string, flags ...string) (p *process, kubeconfig string, err error) {
	flags = append([]string{"up", "--stdin", "--timeout", patience.String()}, flags...)
	p = &process{cmd: exec.Command(program, flags...), turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	// A file and not a buffer, which would need a goroutine.
	if p.stderr, err = os.CreateTemp("", "kubetest"); err != nil {
		return nil, "", err
	}
	if err := os.Remove(p.stderr.Name()); err != nil {
		return nil, "", errors.Join(err, p.stderr.Close())
	}
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, "", errors.Join(err, p.stderr.Close())
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, "", errors.Join(err, p.stderr.Close())
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, "", errors.Join(err, p.stderr.Close())
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		// What is worth knowing is how it ended, which stop says.
		return nil, "", errors.Join(errors.New("it did not become ready"), p.stop())
	}
	return p, strings.TrimSpace(line), nil
}

// do sends a command and waits for its answer. With after it does so only if
// one of these was the last command.
func (p *process) do(command string, after ...string) error {
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	if len(after) > 0 && !slices.Contains(after, p.last) {
		return nil
	}
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, p.said())
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s: the control plane has ended: %w\n%s", command, err, p.said())
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return fmt.Errorf("%s: %s", command, answer)
	}
	p.last = command
	return nil
}

// stop ends the process and waits for it. The error is that of the process,
// with what it said.
func (p *process) stop() error {
	defer p.stderr.Close()
	_ = p.in.Close()
	insist := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer insist.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("control plane: %w\n%s", err, p.said())
	}
	return nil
}

// said is what the process wrote to standard error.
func (p *process) said() string {
	said, err := io.ReadAll(io.NewSectionReader(p.stderr, 0, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(said)
}
