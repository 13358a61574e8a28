package deploy_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/generated"
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
		tests = kubetest.Own(m, &cluster)
	}
	goleak.VerifyTestMain(withTool{tests})
}

// withTool builds what renders charts, for the time of the tests.
type withTool struct{ tests goleak.TestingM }

func (w withTool) Run() (code int) {
	dir, err := os.MkdirTemp("", "chart-")
	if err == nil {
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				code = 1
			}
		}()
		tool := filepath.Join(dir, "chart")
		err = errors.Join(deploy.BuildTool(tool), os.Setenv(deploy.ToolVariable, tool))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
