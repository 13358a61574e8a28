// Command run runs what must pass, step by step, and prints what each step
// costs. Without flags it is the essential run, "make test". It goes on after a
// failed step and exits with 1 at the end.
//
//	-all        everything else, "make test-all"
//	-versions   other versions of Kubernetes, "make test-versions"
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// step is one command. Its standard output goes to save instead of the terminal
// where save is the name of an environment variable; later steps see it there.
type step struct {
	name string
	dir  string
	args []string
	env  []string
	save string
	// plane says that the step uses a control plane that runs for it alone and
	// that its test binaries share.
	plane bool
	// named says that the command is "go test -json", and that the tests that it skips
	// are named at the end.
	named bool
}

// cost is what a step took: CPU is that of all its processes.
type cost struct {
	step      string
	wall, cpu time.Duration
	err       error
	skipped   []string // tests
}

func main() {
	all := flag.Bool("all", false, "run everything that the essential run leaves out")
	others := flag.Bool("versions", false, "test with other versions of Kubernetes")
	flag.Parse()
	steps := essential
	switch {
	case *all:
		steps = everything
	case *others:
		steps = versions
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, steps()))
}

func run(ctx context.Context, steps []step) (status int) {
	var costs []cost
	for _, s := range steps {
		fmt.Printf("== %s\n", s.name)
		made := s.run(ctx)
		costs = append(costs, made...)
		for _, c := range made {
			if c.err != nil {
				fmt.Printf("== %s failed: %v\n", c.step, c.err)
				status = 1
			}
		}
		if ctx.Err() != nil {
			return 130
		}
	}
	table(os.Stdout, costs)
	return status
}

// table prints the costs of all steps, their sum, and the tests that were skipped.
func table(to io.Writer, costs []cost) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "wall s\tCPU s\t  \tstep\t")
	var sum cost
	for _, c := range costs {
		outcome := ""
		if c.err != nil {
			outcome = "FAILED"
		}
		fmt.Fprintf(w, "%.0f\t%.0f\t%s\t%s\t\n", c.wall.Seconds(), c.cpu.Seconds(), outcome, c.step)
		sum.wall += c.wall
		sum.cpu += c.cpu
	}
	fmt.Fprintf(w, "%.0f\t%.0f\t\tall\t\n", sum.wall.Seconds(), sum.cpu.Seconds())
	_ = w.Flush()
	for _, c := range costs {
		for _, test := range c.skipped {
			fmt.Fprintf(to, "left out of %s: %s\n", c.step, test)
		}
	}
}

// run runs the step, and the control plane beside it if it wants one.
func (s step) run(ctx context.Context) []cost {
	if !s.plane {
		return []cost{s.command(ctx)}
	}
	plane, err := startPlane(s.env)
	if err != nil {
		return []cost{{step: s.name, err: err}}
	}
	s.env = append(s.env, "SYNCER_KUBECONFIG="+plane.kubeconfig)
	c := s.command(ctx)
	beside := cost{step: s.name + ": control plane"}
	beside.cpu, beside.err = plane.stop()
	return []cost{c, beside}
}

func (s step) command(ctx context.Context) cost {
	begin := time.Now()
	cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if s.save != "" || s.named {
		cmd.Stdout = &out
	}
	err := cmd.Run()
	var skipped []string
	if s.named {
		skipped = report(os.Stdout, out.String())
	}
	if s.save != "" { // after a failure it is empty, and not that of an earlier step
		err = errors.Join(err, os.Setenv(s.save, strings.TrimSpace(out.String())))
	}
	return cost{step: s.name, wall: time.Since(begin), cpu: cpu(cmd), err: err, skipped: skipped}
}

// cpu is the time that a command and all that it has waited for have computed.
func cpu(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// plane is a control plane that runs beside a step.
type plane struct {
	cmd        *exec.Cmd
	in         io.Closer
	kubeconfig string
}

// startPlane returns when the control plane is ready. Its environment is that of this
// process and env. It ends with stop, and with this process.
func startPlane(env []string) (*plane, error) {
	p := &plane{cmd: exec.Command(os.Getenv("SYNCER_KUBE"), "up", "--stdin")}
	p.cmd.Stderr, p.cmd.Env = os.Stderr, append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is for the tests; stop comes after them
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	p.in = in
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_, err = p.stop()
		return nil, fmt.Errorf("the control plane did not become ready: %w", err)
	}
	p.kubeconfig = strings.TrimSpace(line)
	return p, nil
}

// stop ends the control plane and waits for it.
func (p *plane) stop() (time.Duration, error) {
	_ = p.in.Close()
	err := p.cmd.Wait()
	return cpu(p.cmd), err
}
