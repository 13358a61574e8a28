package kubetest

import (
	"fmt"
	"os"
	"testing"
)

// Runner is the tests of a binary with a control plane around them. It is a
// goleak.TestingM too: what goleak then sees is what remains when the control
// plane has gone.
type Runner struct {
	m  *testing.M
	cp **ControlPlane
}

// Main is for TestMain: the Runner's Run starts a control plane, sets cp to
// it, runs the tests, and stops it.
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m, &cluster).Run()) }
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.Main(m, &cluster)) }
func Main(m *testing.M, cp **ControlPlane) *Runner { return &Runner{m: m, cp: cp} }

// Run returns the exit code: that of the tests, or 1 when the control plane
// did not start or did not last until their end.
func (r *Runner) Run() int {
	cp, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*r.cp = cp
	code := r.m.Run()
	if err := cp.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
