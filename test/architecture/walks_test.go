package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// station is a file and the functions that a walk meets there.
var station = regexp.MustCompile("`([a-z_]+(?:/[a-z_]+)+\\.go)`((?:[\\s,(]+`\\w+(?:\\.\\w+)?`)+)")

// TestWalksAreThere: each function that the walks of docs/architecture.md name
// is in the file that they name.
func TestWalksAreThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, ok := bytes.Cut(page, []byte("## Six walks"))
	if !ok {
		t.Fatal("the page has no walks")
	}
	walks, _, _ = bytes.Cut(walks, []byte("\n## "))
	all := station.FindAllSubmatch(walks, -1)
	if len(all) < 20 {
		t.Fatalf("%d stations are read, want 20 at least", len(all))
	}
	for _, m := range all {
		file := string(m[1])
		path := filepath.Join("../../pkg", file)
		if strings.HasPrefix(file, "config/") {
			path = filepath.Join("../..", file)
		}
		there := functions(t, path)
		for name := range strings.FieldsFuncSeq(string(m[2]), func(r rune) bool { return strings.ContainsRune("`, (\n", r) }) {
			if !slices.Contains(there, name) {
				t.Errorf("%s has no function %s; it has %q", file, name, there)
			}
		}
	}
}

// functions returns the functions that a file declares, a method as Type.Name.
func functions(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if generic, ok := receiver.(*ast.IndexExpr); ok {
				receiver = generic.X
			}
			if id, ok := receiver.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names = append(names, name)
	}
	return names
}
