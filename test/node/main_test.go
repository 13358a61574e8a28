//go:build node

package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
)

// Variables of the environment.
const (
	programVariable = "SYNCER_NODE"      // the program with the kubelet; "make node" prints it
	dirVariable     = "SYNCER_NODE_TEST" // set in the process that runs the tests: its directory
)

var (
	plane   *kubetest.ControlPlane
	client  *kubernetes.Clientset
	testDir string // with images, tools, and the state of the node
)

// TestMain runs the tests in a child with a separate network namespace. Then it checks that
// the child has left nothing behind.
func TestMain(m *testing.M) {
	flag.Parse()
	code, err := 0, error(nil)
	if testDir = os.Getenv(dirVariable); testDir != "" {
		code, err = runTests(m)
	} else {
		code, err = runChild()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// runTests starts node and control plane, and runs the tests.
func runTests(m *testing.M) (code int, err error) {
	began := time.Now()
	plane, err = kubetest.Start("--dir="+filepath.Join(testDir, "s"), "--node="+os.Getenv(programVariable), "--images="+filepath.Join(testDir, "images"))
	if err != nil {
		return 1, err
	}
	defer func() {
		if err = errors.Join(err, plane.Stop()); err == nil && code == 0 {
			err = goleak.Find()
		}
	}()
	config := plane.Config()
	config.WarningHandler = rest.NoWarnings{}
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return 1, err
	}
	if err := loadImage(); err != nil {
		return 1, err
	}
	fmt.Printf("node: up after %.1f s\n", time.Since(began).Seconds())
	return m.Run(), nil
}

// runChild prepares what the tests need, runs them, and compares the machine
// before and after.
func runChild() (code int, err error) {
	if os.Getenv(programVariable) == "" {
		return 1, fmt.Errorf("%s is not set: run \"make test-node\"", programVariable)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := prepare(ctx, dir); err != nil {
		return 1, err
	}
	before, err := look(dir)
	if err != nil {
		return 1, err
	}
	child := exec.CommandContext(ctx, os.Args[0], os.Args[1:]...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.Env = append(os.Environ(), dirVariable+"="+dir)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	// The kernel kills the child when the calling thread ends. The end of the child ends the
	// node's parts.
	runtime.LockOSThread()
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := child.Run(); child.ProcessState == nil {
		return 1, err
	}
	return child.ProcessState.ExitCode(), before.compare(dir)
}

// prepare builds the released files by the documented commands, and the images of the tests.
func prepare(ctx context.Context, dir string) error {
	root, err := gobuild.Root()
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	image := exec.CommandContext(ctx, "make", "-s", "-C", root, "image", "IMAGE_TAR="+filepath.Join(dir, "bin", "syncer-image.tar"))
	if out, err := image.CombinedOutput(); err != nil {
		return fmt.Errorf("make image: %w\n%s", err, out)
	}
	tool := filepath.Join(dir, "chart")
	if err := deploy.BuildTool(tool); err != nil {
		return err
	}
	return errors.Join(os.Setenv(deploy.ToolVariable, tool), writeImages(dir))
}
