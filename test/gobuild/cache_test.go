package gobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository is a small copy of this one: a program, and a test that starts it
// after TestMain has built it.
var repository = map[string]string{
	"go.mod":          "module github.com/secretsync/syncer\n\ngo 1.26.0\n",
	"go.sum":          "",
	"cmd/app/main.go": "package main\n\nfunc main() { println(\"first\") }\n",
	"config/x":        "", "deploy/x": "", "internal/x": "", "keyset/x": "", "pkg/x": "", "docs/page.md": "one",
	"test/live/live_test.go": `package live

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/gobuild"
)

func TestMain(m *testing.M) {
	if err := gobuild.Build(os.Getenv("APP"), "", "../../cmd/app"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestApp(t *testing.T) {
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(os.Getenv("APP")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "first" {
		t.Fatalf("%s, %v", out, err)
	}
}
`,
}

// TestAChangedProgramIsNotAnsweredFromTheCache: after a change of a program that
// a test starts the test runs again, and after another change it does not.
func TestAChangedProgramIsNotAnsweredFromTheCache(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour) // Go does not remember what read a file of the last seconds
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		old = old.Add(time.Minute)
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, old, old)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range repository {
		write(name, text)
	}
	own, err := os.ReadFile("build.go")
	if err != nil {
		t.Fatal(err)
	}
	write("test/gobuild/build.go", string(own))
	app := filepath.Join(t.TempDir(), "app")
	goTest := func() (string, bool) {
		t.Helper()
		cmd := exec.Command("go", "test", "./test/live")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "APP="+app)
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	if out, well := goTest(); !well {
		t.Fatal(out)
	}
	write("docs/page.md", "two")
	if out, well := goTest(); !well || !strings.Contains(out, "(cached)") {
		t.Errorf("after a change of a page: %s", out)
	}
	write("cmd/app/main.go", "package main\n\nfunc main() { println(\"second\") }\n")
	if out, well := goTest(); well || !strings.Contains(out, "second") {
		t.Errorf("after a change of the program: %s", out)
	}
}
