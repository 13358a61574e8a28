package kubetest

import "testing"

// The commands of "kube up".
const (
	stopAPIServer     = "stop-apiserver"
	startAPIServer    = "start-apiserver"
	pauseAPIServer    = "pause-apiserver"
	continueAPIServer = "continue-apiserver"
)

// StopAPIServer kills the API server: connections break and new ones are
// refused. etcd, and with it the data, stays. Where the test does not start
// the API server again, the test's end does.
func (cp *ControlPlane) StopAPIServer(t testing.TB) {
	t.Helper()
	cp.do(t, stopAPIServer)
	t.Cleanup(func() { cp.do(t, startAPIServer, stopAPIServer) })
	if err := cp.audit.abandon(); err != nil {
		t.Fatal(err)
	}
}

// StartAPIServer brings the API server back at the same address with the same
// data and keys, and returns when it is ready.
func (cp *ControlPlane) StartAPIServer(t testing.TB) {
	t.Helper()
	cp.do(t, startAPIServer)
}

// PauseAPIServer makes the API server silent: connections stay, new ones are
// accepted by the kernel, and nothing is answered. It stands still when the
// method returns. Where the test does not let it go on, the test's end does.
func (cp *ControlPlane) PauseAPIServer(t testing.TB) {
	t.Helper()
	cp.do(t, pauseAPIServer)
	cp.audit.pause(true)
	t.Cleanup(func() {
		cp.audit.pause(false)
		cp.do(t, continueAPIServer, pauseAPIServer)
	})
}

// ContinueAPIServer lets a paused API server go on, with the requests that
// have piled up.
func (cp *ControlPlane) ContinueAPIServer(t testing.TB) {
	t.Helper()
	cp.audit.pause(false)
	cp.do(t, continueAPIServer)
}

func (cp *ControlPlane) do(t testing.TB, command string, after ...string) {
	t.Helper()
	if cp.process == nil {
		t.Fatalf("%s: other test binaries use this control plane too; use kubetest.Own in TestMain", command)
	}
	if err := cp.process.do(command, after...); err != nil {
		t.Fatal(err)
	}
}
