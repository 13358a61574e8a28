// Package architecture keeps the direction of imports as
// docs/architecture.md draws it.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/gobuild"
)

const module = "github.com/secretsync/syncer/"

// allowed lists, for each room, the rooms that it may import. A room is a folder with all
// folders below it, except folders that have their own line.
var allowed = map[string][]string{
	"internal": {},
	"config":   {"internal", "pkg/render", "pkg/rotation", "pkg/rotation/versions", "pkg/secret", "pkg/targets"},

	"pkg/pipeline": {"config", "internal", "pkg/conjur", "pkg/health", "pkg/kube", "pkg/notify", "pkg/queue", "pkg/rotation", "pkg/rotation/versions", "pkg/secret", "pkg/sinks", "pkg/sources", "pkg/targets", "pkg/view", "pkg/workers"},
	"pkg/view":     {"internal", "pkg/conjur", "pkg/health", "pkg/queue", "pkg/rotation", "pkg/sinks", "pkg/targets", "pkg/workers"},
	"pkg/sources":  {"internal", "pkg/kube", "pkg/queue", "pkg/targets"},
	"pkg/queue":    {"internal", "pkg/targets"},
	"pkg/workers":  {"internal", "pkg/conjur", "pkg/health", "pkg/queue", "pkg/render", "pkg/secret", "pkg/sinks", "pkg/targets"},
	"pkg/render":   {"internal", "pkg/rotation/versions", "pkg/secret", "pkg/targets"},
	"pkg/sinks":    {"internal", "pkg/secret", "pkg/targets"},
	"pkg/notify":   {"internal", "pkg/targets"},
	"pkg/targets":  {"internal"},
	"pkg/secret":   {},
	"pkg/conjur":   {"internal", "pkg/secret"},
	"pkg/kube":     {"internal", "pkg/targets"},
	"pkg/rotation": {"internal", "pkg/conjur", "pkg/kube", "pkg/notify", "pkg/queue", "pkg/render", "pkg/rotation/versions", "pkg/secret", "pkg/sinks", "pkg/targets"},
	"pkg/health":   {"internal", "pkg/targets"},
	"pkg/tool":     {"config", "deploy/chart", "internal", "pkg/conjur", "pkg/conjurd", "pkg/kube", "pkg/pipeline", "pkg/queue", "pkg/render", "pkg/rotation", "pkg/rotation/versions", "pkg/secret", "pkg/sinks", "pkg/targets", "pkg/workers"},
	"pkg/conjurd":  {},

	// The decision about the next action of a set is a pure function.
	"pkg/rotation/versions": {"pkg/secret"},

	"cmd/syncer":      {"config", "internal", "pkg/conjur", "pkg/conjurd", "pkg/health", "pkg/kube", "pkg/notify", "pkg/pipeline", "pkg/rotation", "pkg/rotation/versions", "pkg/sinks", "pkg/tool"},
	"deploy/chart":    {},
	"deploy/examples": {},
	"bench":           {"internal", "pkg/conjurd"},
	// test/kube is a module that nothing here can import.
	"test": {"pkg/conjurd", "pkg/rotation", "pkg/rotation/versions"},
}

// forbidden are packages, with all below them, that the binary must not contain.
var forbidden = []string{
	"testing",           // test helpers belong in separate packages
	"k8s.io/kubernetes", // the control plane of the tests

	"k8s.io/client-go/kubernetes", // registers the kinds of all API groups (decision 046)
}

type goPackage struct {
	ImportPath, Dir, Export string
	Imports, Deps, GoFiles  []string
}

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,Imports,Deps,GoFiles"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// room returns the room of a package; "" if it has none.
func room(path string) string {
	path = strings.TrimPrefix(path, module)
	best := ""
	for name := range allowed {
		if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > len(best) {
			best = name
		}
	}
	return best
}

// TestSixteenFolders keeps the list of rooms short enough to be read.
func TestSixteenFolders(t *testing.T) {
	folders, err := os.ReadDir("../../pkg")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) > 16 {
		t.Errorf("pkg has %d folders", len(folders))
	}
}

func TestImportsPointDownwards(t *testing.T) {
	packages := list(t, "./...")
	if len(packages) < 10 {
		t.Fatalf("found %d packages only", len(packages))
	}
	for _, p := range packages {
		from := room(p.ImportPath)
		if from == "" {
			t.Errorf("%s belongs to no room: name it in this test and in docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			if to := room(imported); to != from && !slices.Contains(allowed[from], to) {
				t.Errorf("%s imports %s; %s may import only %v", p.ImportPath, imported, from, allowed[from])
			}
		}
	}
}

func TestNothingForbiddenIsLinked(t *testing.T) {
	for _, p := range list(t, "./cmd/syncer") {
		for _, dep := range p.Deps {
			for _, name := range forbidden {
				if dep == name || strings.HasPrefix(dep, name+"/") {
					t.Errorf("%s links %s", p.ImportPath, dep)
				}
			}
		}
	}
}
