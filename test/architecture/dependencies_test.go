package architecture

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachModuleHasAPurpose: docs/dependencies.md has a line for each module that
// go.mod names directly, in the same order, and no other.
func TestEachModuleHasAPurpose(t *testing.T) {
	list := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(m[0], "// indirect") {
				found = append(found, m[1])
			}
		}
		return found
	}
	named := list("../../go.mod", `(?m)^\t(\S+) v.*$`)
	explained := list("../../docs/dependencies.md", "(?m)^\\| `(\\S+)` \\| .+ \\|$")
	if len(named) == 0 || !slices.Equal(named, explained) {
		t.Errorf("go.mod names\n%s\nbut docs/dependencies.md explains\n%s", strings.Join(named, "\n"), strings.Join(explained, "\n"))
	}
}

// TestEachModuleUsesTheToolchain: each go.mod states the same toolchain, "make" uses it
// whatever the environment says, and "make lint" checks each module.
func TestEachModuleUsesTheToolchain(t *testing.T) {
	makefile, err := os.Open("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	defer makefile.Close()
	cmd := exec.Command("make", "-s", "-C", "../..", "-f", "-", "--eval", `variables: ; @echo "$$GOTOOLCHAIN" $(CHECKED) $(APART)`, "variables")
	cmd.Stdin = makefile
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "MAKEFLAGS=--no-print-directory")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	variables := strings.Fields(string(out))
	want, checked, modules := "\ntoolchain "+variables[0]+"\n", variables[1:], 0
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "go.mod" {
			return err
		}
		modules++
		text, err := os.ReadFile(path)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not state %s", path, strings.TrimSpace(want))
		}
		dir, _ := filepath.Rel("../..", filepath.Dir(path))
		if !slices.ContainsFunc(checked, func(at string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }) {
			t.Errorf("CHECKED and APART of the Makefile omit %s", dir)
		}
		return err
	})
	if err != nil || modules < 7 {
		t.Errorf("%d modules, %v", modules, err)
	}
}
