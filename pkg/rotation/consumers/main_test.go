package consumers_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/kubetest"
)

var cluster *kubetest.ControlPlane

func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.Main(m, &cluster)) }
