package tool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/config"
)

func TestAProblemOfSeveralLinesIsOneLine(t *testing.T) {
	var out bytes.Buffer
	v := config.Validation{Warnings: []config.Problem{{Key: "key", Message: "one\ntwo\n"}}}
	if err := (&Tool{Err: &out}).write(v); err != nil || out.String() != "warning: key: one; two\n" {
		t.Errorf("%v, printed %q", err, out.String())
	}
}

// TestReport: an error that stands alone is the caller's to print.
func TestReport(t *testing.T) {
	one, two, three := errors.New("one"), errors.New("two"), errors.New("three")
	for _, c := range []struct {
		err, want error
		said      string
	}{
		{nil, nil, ""},
		{one, one, ""},
		{errors.Join(one, two), ErrReported, "error: one\nerror: two\n"},
		{errors.Join(one, two, three), ErrReported, "error: one\nerror: two\nerror: three\n"},
	} {
		var said strings.Builder
		if err := (&Tool{Err: &said}).Report(c.err); !errors.Is(err, c.want) || fmt.Sprint(err) != fmt.Sprint(c.want) || said.String() != c.said {
			t.Errorf("%v: returned %v, printed %q", c.err, err, said.String())
		}
	}
}

// TestNotesAnnotations: only of a file that is read without being named.
func TestNotesAnnotations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "annotations")
	if err := os.WriteFile(file, []byte("conjur.org/secrets-destination=\"file\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	standalone := filepath.Join(t.TempDir(), "syncer.yaml")
	if err := os.WriteFile(standalone, []byte("containerMode: standalone\nkubernetes: {namespaces: [a]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	note := "note: reading the annotations in " + file + "; --annotations names another file\n"
	for _, c := range []struct {
		name, config string
		named        bool
		want         string
	}{
		{file, "", false, note},
		{file, "", true, ""},
		{file + "-none", "", false, ""},
		{file, standalone, false, "warning: " + file + ": ignored, because a standalone has a configuration file; name the annotations with --annotations to use them\n"},
	} {
		var said, out strings.Builder
		tool := Tool{Sources: config.Sources{Annotations: config.File{Name: c.name}, AnnotationsNamed: c.named, ConfigFile: config.File{Name: c.config}}, Out: &out, Err: &said}
		_ = tool.Config()
		got := ""
		for line := range strings.Lines(said.String()) {
			if !strings.HasPrefix(line, "error: ") { // the settings are not complete
				got += line
			}
		}
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// TestExplainShowsTheSettingsOfAFile, and no target that is not there.
func TestExplainShowsTheSettingsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "syncer.yaml")
	if err := os.WriteFile(file, []byte(`secretsDestination: file
conjur: {applianceUrl: "https://conjur", account: dev, login: host/a}
targets: [{name: db, format: template, template: 'p={{ secret "p" }}', secrets: [{p: db/password}]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said strings.Builder
	tool := Tool{Sources: config.Sources{ConfigFile: config.File{Name: file}, Getenv: func(name string) string { return map[string]string{"CONJUR_AUTHN_API_KEY": "x"}[name] }}, Out: &out, Err: &said}
	err := tool.Explain("file/db")
	if text := strings.Join(strings.Fields(out.String()), " "); err != nil || !strings.Contains(text, "format template template inline entries p: db/password") {
		t.Errorf("%v\n%s%s", err, out.String(), said.String())
	}
	if err := tool.Explain("file/none"); err == nil || !strings.Contains(err.Error(), `there is no target "file/none"`) {
		t.Errorf("a target that is not there: %v", err)
	}
	if err := tool.Render(t.Context(), "none", ""); err == nil {
		t.Error("a group that is not there is rendered")
	}
}

// TestAFolderThatCannotBeReadIsAnError: what it holds is not left out. Its path is too long,
// because root may read all others.
func TestAFolderThatCannotBeReadIsAnError(t *testing.T) {
	top, name := t.TempDir(), strings.Repeat("x", 255)
	t.Chdir(top)
	err := os.WriteFile("a.yaml", nil, 0o600)
	for range 4096/len(name) + 1 {
		err = errors.Join(err, os.Mkdir(name, 0o700), os.Chdir(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := manifestFiles([]string{top}); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("error %v, want that the path is too long", err)
	}
}
