// Package architecture keeps the direction of imports as
// docs/architecture.md draws it.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/gobuild"
)

const module = "github.com/secretsync/syncer/"

// allowed is, for each room, the rooms that it may import. A room is a folder
// and all folders below it.
var allowed = map[string][]string{
	"pkg/secret":              {},
	"internal/brief":          {},
	"pkg/targets":             {},
	"pkg/targets/records":     {"pkg/targets"},
	"pkg/targets/definitions": {"pkg/targets"},
	"internal/safefile":       {},
	"internal/retry":          {},
	"internal/wake":           {},
	"internal/turns":          {},
	"pkg/conjurd":             {},
	"pkg/conjur":              {"internal/retry", "internal/safefile", "pkg/secret"},
	"pkg/conjur/variables":    {"pkg/conjur", "internal/retry", "pkg/secret"},
	"pkg/conjur/authn":        {"pkg/conjur", "internal/safefile", "pkg/secret"},
	"pkg/queue":               {"internal/retry", "pkg/targets"},
	"pkg/render":              {"pkg/secret", "pkg/targets", "pkg/rotation/versions"},
	"pkg/sinks":               {"internal/brief", "pkg/targets/records", "internal/safefile", "pkg/secret", "pkg/targets"},
	"pkg/notify":              {"internal/brief", "pkg/targets/records", "internal/safefile", "pkg/targets", "internal/turns", "internal/wake"},
	"pkg/health":              {"pkg/targets/records", "pkg/targets"},
	"pkg/kube":                {"internal/brief", "internal/retry", "pkg/targets"},
	"pkg/tool/manifest":       {"pkg/targets/definitions", "pkg/targets"},
	"pkg/notify/process":      {},
	"pkg/rotation/generate":   {"pkg/secret"},
	"pkg/rotation/actuators":  {"internal/brief", "pkg/conjur", "pkg/secret", "internal/terminal", "pkg/rotation/versions"},
	"pkg/rotation":            {"pkg/rotation/actuators", "internal/brief", "pkg/conjur", "pkg/rotation/generate", "internal/safefile", "pkg/secret", "pkg/rotation/versions"},
	"pkg/rotation/versions":   {"pkg/secret"},
	"pkg/rotation/consumers":  {"internal/brief", "pkg/targets/definitions", "pkg/kube", "pkg/notify", "pkg/rotation", "pkg/targets", "pkg/rotation/versions"},
	"pkg/sources":             {"pkg/kube", "pkg/queue", "internal/safefile", "pkg/targets", "internal/wake"},
	"pkg/workers":             {"internal/brief", "pkg/queue", "pkg/targets/records", "pkg/render", "pkg/secret", "pkg/sinks", "pkg/targets", "pkg/health/traces", "pkg/conjur/variables"},
	"internal/logs":           {},
	"pkg/health/status":       {"internal/safefile"},
	"pkg/health/traces":       {},
	"internal/terminal":       {},
	"pkg/pipeline/connect":    {"config", "pkg/conjur/authn", "pkg/conjur", "pkg/kube"},
	"pkg/pipeline/rotators":   {"config", "pkg/rotation/actuators", "pkg/conjur", "pkg/pipeline/connect", "pkg/rotation/consumers", "pkg/kube", "pkg/rotation", "pkg/secret", "pkg/sinks", "pkg/targets", "pkg/conjur/variables", "pkg/rotation/versions"},
	"pkg/pipeline": {
		"config", "pkg/conjur/authn", "internal/brief", "pkg/conjur", "pkg/pipeline/connect", "pkg/rotation/consumers", "pkg/targets/definitions", "pkg/health", "pkg/kube", "internal/logs", "pkg/notify", "pkg/health/status", "pkg/notify/process", "pkg/queue", "pkg/targets/records", "internal/retry", "pkg/rotation", "pkg/pipeline/rotators", "pkg/secret",
		"pkg/sinks", "pkg/sources", "pkg/targets", "pkg/health/traces", "internal/turns", "pkg/conjur/variables", "internal/wake", "pkg/workers",
	},
	"pkg/tool/demo":            {"config", "pkg/conjur", "pkg/conjurd", "pkg/pipeline/connect", "pkg/pipeline", "pkg/queue", "pkg/rotation", "pkg/pipeline/rotators", "pkg/targets", "internal/terminal", "pkg/rotation/versions", "pkg/workers"},
	"pkg/operate":              {"config", "pkg/conjur", "pkg/targets/definitions", "pkg/notify", "pkg/health/status", "internal/safefile", "pkg/secret", "internal/terminal", "pkg/conjur/variables"},
	"pkg/tool/secretsprovider": {"config", "pkg/tool/manifest"},
	"pkg/tool": {
		"config", "pkg/targets/definitions", "pkg/kube", "pkg/tool/manifest", "pkg/operate", "pkg/tool/secretsprovider", "pkg/targets/records", "pkg/render", "internal/safefile", "pkg/secret", "pkg/sinks", "pkg/targets", "internal/terminal", "pkg/conjur/variables", "pkg/workers",
	},
	"config": {"pkg/targets/definitions", "pkg/rotation/generate", "pkg/render", "internal/safefile", "pkg/secret", "pkg/targets", "pkg/rotation/versions"},
	"cmd/syncer": {
		"config", "pkg/conjur/authn", "pkg/conjur", "pkg/conjurd", "pkg/pipeline/connect", "pkg/rotation/consumers", "pkg/tool/demo", "pkg/rotation/generate", "pkg/kube", "internal/logs", "pkg/operate", "pkg/pipeline", "pkg/notify/process", "pkg/rotation", "pkg/pipeline/rotators", "pkg/sinks", "internal/terminal", "pkg/tool", "pkg/rotation/versions",
	},
	"deploy/examples": {},
	"bench":           {"pkg/conjurd", "internal/terminal"},
	// test/kube is a module that nothing here can import.
	"test": {"pkg/conjurd"},
}

// forbidden is what must not be linked into the binary, with the packages below it.
var forbidden = []string{
	"testing",           // test helpers belong in packages of their own
	"k8s.io/kubernetes", // the control plane of the tests

	"k8s.io/client-go/kubernetes", // registers the kinds of all API groups (decision 046)
}

type goPackage struct {
	ImportPath    string
	Imports, Deps []string
}

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, args...)...)
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

// room is the one that a package of ours belongs to; "" for a package that is
// in none.
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
