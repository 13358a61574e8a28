package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEachMessageIsInTheTroubleshooting: docs/troubleshooting.md contains every warning and
// error of the log, every subject of a trouble, and every reason of an Event. Of a text, its
// first clause is enough.
func TestEachMessageIsInTheTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	found := messages(t)
	if len(found) < 40 {
		t.Errorf("found %d messages only", len(found))
	}
	for text, where := range found {
		clause := text[:strings.IndexAny(text+";", ",;:")]
		if !strings.Contains(string(page), "`"+clause) {
			t.Errorf("%s: docs/troubleshooting.md does not have %q", where, clause)
		}
	}
}

// messages returns the texts in the code that an operator sees, and their places.
func messages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	files := token.NewFileSet()
	for _, root := range []string{"../../pkg", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "conjurd" || strings.HasSuffix(entry.Name(), "test")):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				for _, text := range said(n) {
					found[strings.TrimSpace(text)] = files.Position(n.Pos()).String()
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// said returns the texts of a node that logs or reports.
func said(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) < 2 {
			return nil
		}
		switch f.Sel.Name {
		case "Warn", "Error", "Report", "Remark":
			return literals(n.Args[0])
		}
	case *ast.ValueSpec:
		if strings.HasPrefix(n.Names[0].Name, "reason") && len(n.Values) == 1 {
			return literals(n.Values[0])
		}
	}
	return nil
}

// literals returns the texts that are written out in an expression.
func literals(e ast.Expr) (texts []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			texts = append(texts, text)
		}
		return true
	})
	return texts
}
