package architecture

import (
	"os"
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
