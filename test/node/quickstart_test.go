//go:build node

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/gobuild"
)

// standIns are programs of the quick start that have nothing to do here, or not
// what they would do elsewhere: the cluster is this node, and has the image.
var standIns = map[string]string{
	"make": "true", "kind": "true",
	"docker": "echo 10.2.0.1", // the node's address, which Pods reach
	"helm": `[ "$1" = install ] || exit 1; name=$2 chart=$3; shift 3
"$` + deploy.ToolVariable + `" render -release "$name" -namespace "$NAMESPACE" "$@" "$chart" | kubectl create -f -`,
}

// TestQuickStart runs the lines of docs/quickstart.md as they stand there, and
// the last of them until it shows the value.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	w := &world{t: t, namespace: plane.Namespace(t)}
	t.Cleanup(w.end)
	page, err := os.ReadFile("../../docs/quickstart.md")
	w.check(err)
	_, block, _ := strings.Cut(string(page), "## On a cluster")
	_, block, _ = strings.Cut(block, "```sh\n")
	block, _, _ = strings.Cut(block, "\n```")
	last := strings.LastIndex(block, "\n")
	if last < 0 {
		t.Fatal("docs/quickstart.md has no lines to run")
	}
	printed := w.newcomer(block[:last] + "\nset +e\nwhile sleep 0.2; do" + block[last:] + "\ndone")
	defer func() {
		if t.Failed() {
			t.Logf("the terminal:\n%s", printed())
		}
	}()
	w.eventually("value on the terminal", func() bool { return strings.Contains(printed(), "s3cret\n1 target, 1 fresh") })
}

// newcomer runs a shell script as somebody does who has this repository, kubectl
// and a cluster, until the test ends, and returns what returns its output.
func (w *world) newcomer(script string) (printed func() string) {
	w.t.Helper()
	root, err := gobuild.Root()
	w.check(err)
	dir, tools := w.t.TempDir(), w.t.TempDir()
	w.check(os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	w.check(os.Symlink(filepath.Join(root, "bin", "linux-"+architecture, "syncer"), filepath.Join(dir, "bin", "syncer")))
	w.check(os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")))
	for name, text := range standIns {
		w.check(os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/bash\nset -eo pipefail\n"+text+"\n"), 0o755))
	}
	config, err := os.ReadFile(plane.Kubeconfig())
	w.check(err)
	kubeconfig := filepath.Join(tools, "kubeconfig")
	w.check(os.WriteFile(kubeconfig, []byte(strings.Replace(string(config), "user: admin}", "user: admin, namespace: "+w.namespace+"}", 1)), 0o600))
	out, err := os.Create(filepath.Join(tools, "out"))
	w.check(err)
	defer out.Close()
	shell := exec.Command("bash", "-eo", "pipefail", "-c", script)
	shell.Dir, shell.Stdout, shell.Stderr = dir, out, out
	shell.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "NAMESPACE="+w.namespace, "HOME="+dir)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.check(shell.Start())
	w.t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) // and what it has started
		_ = shell.Wait()
	})
	return func() string {
		w.t.Helper()
		text, err := os.ReadFile(out.Name())
		w.check(err)
		return string(text)
	}
}
