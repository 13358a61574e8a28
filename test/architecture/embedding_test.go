package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoPartOfThePipelineEmbedsAnother: a struct names what it uses, so that no part
// receives all that another part can do.
func TestNoPartOfThePipelineEmbedsAnother(t *testing.T) {
	paths, err := filepath.Glob("../../pkg/pipeline/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	types, structs := map[string]bool{}, map[string]*ast.StructType{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				types[spec.Name.Name] = true
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	for name, s := range structs {
		for _, field := range s.Fields.List {
			embedded := field.Type
			if star, ok := embedded.(*ast.StarExpr); ok {
				embedded = star.X
			}
			if id, ok := embedded.(*ast.Ident); ok && len(field.Names) == 0 && types[id.Name] {
				t.Errorf("%s embeds %s; give it a name, or only the parts that are used", name, id.Name)
			}
		}
	}
}
