package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// station is a line of a walk: how far it is indented, its file, and the functions
// there.
var station = regexp.MustCompile(`(?m)^( *)([a-z_]+(?:/[a-z_]+)+\.go) (.*)$`)

// TestWalksAreComplete: each function that the walks of docs/architecture.md name is in
// the file that they name, and names the function that follows it. A walk that omits a
// function between two others fails, unless the two have a name in common.
func TestWalksAreComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, ok := bytes.Cut(page, []byte("## Seven walks"))
	if !ok {
		t.Fatal("the page has no walks")
	}
	walks, _, _ = bytes.Cut(walks, []byte("\n## "))
	all := station.FindAllSubmatch(walks, -1)
	if len(all) < 50 {
		t.Fatalf("%d stations are read, want 50 at least", len(all))
	}
	var callers []caller // of the next line, from the outside to the inside
	for _, m := range all {
		for len(callers) > 0 && callers[len(callers)-1].indent >= len(m[1]) {
			callers = callers[:len(callers)-1]
		}
		file := string(m[2])
		there := functions(t, file)
		for name := range strings.SplitSeq(string(m[3]), " → ") {
			f, ok := there[name]
			if !ok {
				t.Fatalf("%s has no function %s", file, name)
			}
			if len(callers) > 0 && !callers[len(callers)-1].names(name) {
				t.Errorf("%s does not call %s of %s; write the functions between them into the walk", callers[len(callers)-1].name, name, file)
			}
			callers = append(callers, caller{len(m[1]), name, f})
		}
	}
}

// caller is a function that calls those of the lines with more indentation.
type caller struct {
	indent int
	name   string
	f      *ast.FuncDecl
}

// names reports whether the caller's body contains the name of a function, or of a
// method without its type.
func (c caller) names(function string) (found bool) {
	short := function[strings.LastIndex(function, ".")+1:]
	ast.Inspect(c.f.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == short
		return !found
	})
	return found
}

// functions returns the functions that a file declares, a method as Type.Name.
func functions(t *testing.T, file string) map[string]*ast.FuncDecl {
	t.Helper()
	path := filepath.Join("../../pkg", file)
	if strings.HasPrefix(file, "config/") {
		path = filepath.Join("../..", file)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ast.FuncDecl{}
	for _, d := range parsed.Decls {
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
		all[name] = f
	}
	return all
}
