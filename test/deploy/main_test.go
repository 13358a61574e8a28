package deploy_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/generated"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
)

// Where things are, from this folder.
const (
	chartDir     = "../../deploy/chart/syncer"
	kustomizeDir = "../../deploy/kustomize"
)

var cluster *kubetest.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	var tests goleak.TestingM = m
	if !generated.Updating() { // for which no cluster is needed
		tests = kubetest.Main(m, &cluster)
	}
	goleak.VerifyTestMain(gobuild.Main(tests, func(dir string) error {
		tool := filepath.Join(dir, "chart")
		return errors.Join(deploy.BuildTool(tool), os.Setenv(deploy.ToolVariable, tool))
	}))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
