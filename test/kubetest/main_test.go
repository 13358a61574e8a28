package kubetest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/kubetest"
)

var cluster *kubetest.ControlPlane

// abandoner says that this process is to start a control plane and to wait for
// its death: see TestNothingIsLeftAfterTheTestIsKilled.
const abandoner = "KUBETEST_ABANDONER"

func TestMain(m *testing.M) {
	if os.Getenv(abandoner) != "" {
		cp, err := kubetest.Start()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cp.Kubeconfig())
		time.Sleep(time.Hour) // without cgo, waiting for nothing would count as a deadlock
	}
	goleak.VerifyTestMain(kubetest.Own(m, &cluster))
}

func TestMainFailsWithoutAControlPlane(t *testing.T) {
	t.Setenv("SYNCER_KUBE", "")
	var cp *kubetest.ControlPlane
	if code := kubetest.Own(nil, &cp).Run(); code != 1 || cp != nil {
		t.Errorf("exit code %d, control plane %v; want 1 and none", code, cp)
	}
}
