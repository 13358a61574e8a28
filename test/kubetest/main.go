package kubetest

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Runner is the tests of a binary with a control plane around them. It is a
// goleak.TestingM too: what goleak then sees is what remains when the control
// plane has gone.
type Runner struct {
	m     *testing.M
	start func() (*ControlPlane, error)
	cp    **ControlPlane
	then  []func([]Call) error
}

// Main is for TestMain: the Runner's Run sets cp to a control plane and runs
// the tests. The control plane is that of Shared where there is one, else Run
// starts and stops its own. Tests keep to their namespaces: they neither take the
// API server away nor watch all namespaces.
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m, &cluster).Run()) }
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.Main(m, &cluster)) }
func Main(m *testing.M, cp **ControlPlane) *Runner {
	return &Runner{m: m, cp: cp, start: Shared}
}

// Own is like Main, but the control plane is never shared, so that tests may break
// it. If the tests pass, Run calls each function of then with all calls that the API
// server received: no test can look back on all parallel tests.
func Own(m *testing.M, cp **ControlPlane, then ...func([]Call) error) *Runner {
	return &Runner{m: m, cp: cp, start: func() (*ControlPlane, error) { return Start() }, then: then}
}

// Run returns the exit code: that of the tests, or 1 when the control plane
// did not start or did not last until their end, or a look back failed.
func (r *Runner) Run() int {
	cp, err := r.start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*r.cp = cp
	code := r.m.Run()
	if code == 0 {
		err = r.lookBack()
	}
	if err := errors.Join(err, cp.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func (r *Runner) lookBack() (err error) {
	calls, _, err := (*r.cp).audit.calls(0)
	for _, look := range r.then {
		err = errors.Join(err, look(calls))
	}
	return err
}
