package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestQuickStart runs the lines of docs/quickstart.md that need no cluster, as they stand
// there. Only the build and the port differ.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```sh\n")
	block, _, _ = strings.Cut(block, "\n```")
	build, script, found := strings.Cut(block, "\n")
	if !found || !strings.HasPrefix(build, "make build ") {
		t.Fatalf("the first line is %q", build)
	}
	const serve = "syncer conjurd --dir conjur"
	if !strings.Contains(script, serve+" >") {
		t.Fatalf("the lines do not serve with %s", serve)
	}
	script = strings.Replace(script, serve+" >", serve+" --addr 127.0.0.1:0 >", 1)
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "syncer")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
	shell.Dir, shell.Env = dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), asCommand + "=1"}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(filepath.Join(bin, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	shell.Stdout, shell.Stderr = out, out
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // the server and the sidecar
	err = shell.Wait()
	printed, _ := os.ReadFile(out.Name())
	first, second := strings.Index(string(printed), `"db": "s3cret"`), strings.Index(string(printed), `"db": "changed"`)
	if err != nil || first < 0 || second < first {
		t.Errorf("%v; the terminal:\n%s", err, printed)
	}
}
