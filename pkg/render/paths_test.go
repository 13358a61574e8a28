package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestFilesOfAFolderAreAtTheirPaths(t *testing.T) {
	target := &targets.Target{Group: "g", Format: targets.FormatDirectory, Entries: []targets.Entry{
		{Alias: "user", Variable: "a"}, {Alias: "no/name of a file", Variable: "b", Path: "tls/server/key.pem"}, {Alias: "crt", Variable: "c", Path: "tls/crt", Mode: 0o440},
	}}
	if err := render.Check(target, ""); err != nil {
		t.Error(err)
	}
	items := make([]render.Item, len(target.Entries))
	for i, e := range target.Entries {
		items[i] = render.Item{Alias: e.Alias, Value: secret.New([]byte(e.Variable))}
	}
	result, err := render.Render(target, "", items)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(result.Parts)), []string{"tls/crt", "tls/server/key.pem", "user"}; !slices.Equal(got, want) {
		t.Errorf("parts %q, want %q", got, want)
	}
}

func TestLengthsOfPaths(t *testing.T) {
	for less := range 3 {
		for _, path := range []string{
			strings.Repeat("x", targets.MaxFileName-1+less), "a/" + strings.Repeat("x", targets.MaxFileName-1+less) + "/b",
			strings.Repeat("d/", targets.MaxFolders-1+less) + "x",
		} {
			target := &targets.Target{Group: "g", Format: targets.FormatDirectory, Entries: []targets.Entry{{Alias: "a", Path: path}}}
			if err := render.Check(target, ""); (err == nil) != (less < 2) {
				t.Errorf("a path of %d bytes, the bound%+d: %v", len(path), less-1, err)
			}
		}
	}
}

func TestPathsThatCannotBeAreAllNamed(t *testing.T) {
	entries := []targets.Entry{
		{Alias: "absolute", Path: "/etc/passwd"}, {Alias: "out", Path: "../x"}, {Alias: "around", Path: "a/../../x"}, {Alias: "twice", Path: "a//b"},
		{Alias: "end", Path: "a/"}, {Alias: "dot", Path: "./a"}, {Alias: "data", Path: "..data/x"}, {Alias: "own", Path: "a/.syncer-x"},
		{Alias: "long", Path: "a/" + strings.Repeat("x", 256)},
		{Alias: "one", Path: "same/path"}, {Alias: "two", Path: "same/path"}, {Alias: "file"}, {Alias: "as", Path: "file"},
		{Alias: "below", Path: "file/x"}, {Alias: "deep", Path: "same/path/y/z"},
	}
	err := render.Check(&targets.Target{Group: "g", Format: targets.FormatDirectory, Entries: entries}, "")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`alias "absolute": the path "/etc/passwd" is absolute`, `alias "out": the path "../x" cannot be`, `alias "around": the path "a/../../x"`,
		`alias "twice": the path "a//b"`, `alias "end": the path "a/"`, `alias "dot": the path "./a"`, `alias "data": the path "..data/x"`,
		`alias "own": the path "a/.syncer-x" cannot be: names that begin with .. or .syncer- are reserved`, `alias "long": the path "a/x`,
		`alias "two": its path "same/path" is that of alias "one" too`, `alias "as": its path "file" is that of alias "file" too`,
		`alias "below": its path "file/x" is below "file", which is the file of alias "file"`, `alias "deep": its path "same/path/y/z" is below "same/path"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	err = render.Check(&targets.Target{Group: "g", Format: targets.FormatYAML, Entries: []targets.Entry{{Alias: "p", Path: "x"}, {Alias: "m", Mode: 0o400}}}, "")
	for _, alias := range []string{"p", "m"} {
		if want := `alias "` + alias + `": it has a path or a mode, and format yaml makes one file of all; use format directory`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}
