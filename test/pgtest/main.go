package pgtest

import (
	"fmt"
	"os"
	"testing"
)

// Runner is the tests of a binary with a server around them. It is a
// goleak.TestingM too.
type Runner struct {
	m      *testing.M
	server **Server
}

// Main is for TestMain: the Runner's Run starts a server, sets server to it,
// runs the tests, and stops it.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(m, &server)) }
func Main(m *testing.M, server **Server) *Runner { return &Runner{m, server} }

// Run returns the exit code: that of the tests, or 1 where there is no server.
func (r *Runner) Run() int {
	s, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*r.server = s
	code := r.m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
