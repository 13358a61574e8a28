package architecture

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// longestFile and smallFile are in lines.
	longestFile = 500
	smallFile   = 100
	// mostSmallFiles is the permitted share of small files, in percent.
	mostSmallFiles = 23
)

// circular is the permitted number of arrows in circles between the files of a room. An
// arrow leads from a file to another one of the same package that declares a name which it
// uses; it is in a circle if arrows lead back. Lower a number with each circle that goes.
var circular = map[string]int{
	"cmd/syncer":                   50,
	"config":                       157,
	"pkg/conjur":                   49,
	"pkg/conjur/variables":         93,
	"pkg/conjurd":                  140,
	"pkg/conjurd/conformance":      52,
	"pkg/conjurd/conjurdtest":      6,
	"pkg/conjurd/home":             6,
	"pkg/conjurd/internal/load":    4,
	"pkg/conjurd/internal/policy":  13,
	"pkg/conjurd/internal/store":   24,
	"pkg/kube":                     22,
	"pkg/notify":                   8,
	"pkg/pipeline":                 56,
	"pkg/pipeline/rotators":        5,
	"pkg/queue":                    6,
	"pkg/render":                   73,
	"pkg/rotation":                 15,
	"pkg/rotation/actuators":       8,
	"pkg/rotation/actuators/cloud": 19,
	"pkg/rotation/consumers":       13,
	"pkg/rotation/generate":        5,
	"pkg/rotation/versions":        11,
	"pkg/rotation/witnesses":       2,
	"pkg/sinks":                    15,
	"pkg/sinks/kubesecrets":        11,
	"pkg/sources":                  4,
	"pkg/targets":                  2,
	"pkg/targets/definitions":      5,
	"pkg/targets/records":          13,
	"pkg/tool":                     42,
	"pkg/tool/demo":                6,
	"pkg/tool/injection":           2,
	"pkg/tool/manifest":            13,
	"pkg/tool/secretsprovider":     4,
	"pkg/workers":                  66,
}

// ours are the patterns of the product's packages.
var ours = []string{"./cmd/...", "./config/...", "./internal/...", "./pkg/..."}

// filesOf returns the arrows between the files of each package, by folder. They are those
// of functions, methods, types, constants and variables; fields follow their types.
func filesOf(t *testing.T) map[string]map[string]map[string]bool {
	t.Helper()
	exports, checked := map[string]string{}, map[string]map[string]map[string]bool{}
	packages := list(t, append([]string{"-export", "-deps"}, ours...)...)
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	positions := token.NewFileSet()
	imports := importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range packages {
		folder, isOurs := strings.CutPrefix(p.ImportPath, module)
		if !isOurs {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		own, err := (&types.Config{Importer: imports}).Check(p.ImportPath, positions, files, info)
		if err != nil {
			t.Fatal(err)
		}
		to := map[string]map[string]bool{}
		for _, name := range p.GoFiles {
			to[name] = map[string]bool{}
		}
		for use, object := range info.Uses {
			_, function := object.(*types.Func)
			if object.Pkg() != own || !function && object.Parent() != own.Scope() {
				continue
			}
			from, at := filepath.Base(positions.Position(use.Pos()).Filename), filepath.Base(positions.Position(object.Pos()).Filename)
			if from != at {
				to[from][at] = true
			}
		}
		checked[folder] = to
	}
	return checked
}

// inCircles counts the arrows whose end leads back to their beginning.
func inCircles(to map[string]map[string]bool) (n int) {
	reaches := func(from, goal string) bool {
		seen, next := map[string]bool{}, []string{from}
		for len(next) > 0 {
			file := next[0]
			next = next[1:]
			if file == goal {
				return true
			}
			if !seen[file] {
				seen[file] = true
				next = slices.AppendSeq(next, maps.Keys(to[file]))
			}
		}
		return false
	}
	for from, all := range to {
		for other := range all {
			if reaches(other, from) {
				n++
			}
		}
	}
	return n
}

// TestFilesOfARoomFormFewCircles keeps a reader from going back and forth between files.
func TestFilesOfARoomFormFewCircles(t *testing.T) {
	found := map[string]int{}
	for folder, arrows := range filesOf(t) {
		if n := inCircles(arrows); n > 0 {
			found[folder] = n
		}
	}
	if len(found) < 5 {
		t.Fatalf("circles are found in %d folders only", len(found))
	}
	for folder, n := range found {
		if n > circular[folder] {
			t.Errorf("the files of %q have %d arrows in circles, and may have %d: declare each thing in the file that it belongs to", folder, n, circular[folder])
		}
	}
}

// TestFilesHaveTheSizeOfAType: not longer than a reader reads, and few of them fragments.
func TestFilesHaveTheSizeOfAType(t *testing.T) {
	small, all := 0, 0
	for _, p := range list(t, ours...) {
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all++
			switch lines := bytes.Count(text, []byte("\n")); {
			case lines > longestFile:
				t.Errorf("%s/%s has %d lines; divide it by the tasks of its types", p.ImportPath, name, lines)
			case lines < smallFile:
				small++
			}
		}
	}
	if all < 100 || small*100 > mostSmallFiles*all {
		t.Errorf("%d of %d files have fewer than %d lines, and %d %% may; join files of one type", small, all, smallFile, mostSmallFiles)
	}
}

// namedFile is the name of a file in a comment, without a folder.
var namedFile = regexp.MustCompile(`(?:^|[^/\w.])([a-z]\w*\.go)\b`)

// TestPackageCommentsNameTheirFiles: each file that the comment of a package names is in
// that package.
func TestPackageCommentsNameTheirFiles(t *testing.T) {
	named := 0
	for _, p := range list(t, ours...) {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range namedFile.FindAllStringSubmatch(f.Doc.Text(), -1) {
				named++
				if _, err := os.Stat(filepath.Join(p.Dir, m[1])); err != nil {
					t.Errorf("the comment of %s names %s, which is not there", p.ImportPath, m[1])
				}
			}
		}
	}
	if named < 10 {
		t.Fatalf("package comments name %d files only", named)
	}
}
