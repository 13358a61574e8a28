package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
)

// parse returns the values of an annotations file called "f".
func parse(text string) (map[string]string, report) {
	var r report
	values := map[string]string{}
	for key, a := range parseAnnotations("f", []byte(text), &r) {
		if !a.bad {
			values[key] = a.value
		}
	}
	return values, r
}

func TestParseAnnotations(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		in   string
		want map[string]string
	}{
		"simple":              {"a=\"b\"\n", map[string]string{"a": "b"}},
		"empty":               {"", map[string]string{}},
		"no newline at end":   {"a=\"b\"\nc=\"d\"", map[string]string{"a": "b", "c": "d"}},
		"back-quoted":         {"a=`b\\n`\n", map[string]string{"a": "b\\n"}},
		"one character":       {"a='b'\n", map[string]string{"a": "b"}},
		"escapes":             {`a="x\ny\t\"q\" \\ \u00e4 \x41"`, map[string]string{"a": "x\ny\t\"q\" \\ ä A"}},
		"CRLF":                {"a=\"b\"\r\nc=\"d\"\r\n", map[string]string{"a": "b", "c": "d"}},
		"space before a key":  {" a=\"b\"\n", map[string]string{" a": "b"}},
		"unescaped UTF-8":     {"a=\"ä\"\n", map[string]string{"a": "ä"}},
		"equals in the value": {"a=\"b=c\"\n", map[string]string{"a": "b=c"}},
		"empty value":         {"a=\"\"\n", map[string]string{"a": ""}},
		"byte-order mark":     {"\uFEFFa=\"b\"\n", map[string]string{"a": "b"}},
		"long line":           {"a=\"b\"\nc=\"" + long + "\"\nd=\"e\"\n", map[string]string{"a": "b", "c": long, "d": "e"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, r := parse(c.in)
			if len(r.problems)+len(r.warnings) > 0 || !maps.Equal(got, c.want) {
				t.Errorf("got %.200q, %v, %v", got, r.problems, r.warnings)
			}
		})
	}
}

func TestParseAnnotationsRefusesALine(t *testing.T) {
	for name, line := range map[string]string{
		"unquoted":              "a=b",
		"no equals":             "a: b",
		"no key":                `="b"`,
		"blank":                 "",
		"spaces":                "  ",
		"single-quoted word":    "a='bc'",
		"trailing space":        `a="b" `,
		"leading space":         `a= "b"`,
		"trailing text":         `a="b"c`,
		"no closing quote":      `a="b`,
		"nothing":               "a=",
		"bad escape":            `a="\q"`,
		"two carriage returns":  "a=\"b\"\r\r",
		"newline between lines": "a=\"b",
	} {
		t.Run(name, func(t *testing.T) {
			got, r := parse("x=\"1\"\n" + line + "\ny=\"2\"\n")
			if len(r.problems) != 1 || r.problems[0].Key != "f:2" {
				t.Errorf("got %q, problems %q", got, r.problems)
			}
			if got["x"] != "1" || got["y"] != "2" {
				t.Errorf("the other lines were lost: %q", got)
			}
		})
	}
}

// TestParseAnnotationsOfAnotherFile reads what is no file of annotations: the
// report stays short, and shows nothing of it.
func TestParseAnnotationsOfAnotherFile(t *testing.T) {
	_, r := parse(strings.Repeat("canary\nCANARY==\n", 1000))
	if got := len(r.problems); got != maxMalformed+1 {
		t.Errorf("%d problems", got)
	}
	if got := r.problems[len(r.problems)-1]; got.Key != "f" || !strings.HasPrefix(got.Message, "1900 more lines") {
		t.Errorf("the last problem is %q", got)
	}
	if text := fmt.Sprint(plain(r.problems)); strings.Contains(strings.ToLower(text), "canary") {
		t.Errorf("the file is shown: %.500s", text)
	}
	if _, r = parse("conjur.org/log-level=info\n"); !strings.Contains(r.problems[0].Message, `"conjur.org/log-level"`) {
		t.Errorf("Syncer's own key is not shown: %q", r.problems)
	}
}

func TestAFileOfAnyLengthIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "annotations")
	if err := os.WriteFile(path, []byte("a=\"b\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, safefile.MaxInput+1); err != nil {
		t.Fatal(err)
	}
	var r report
	readAnnotations(ReadFile(path), &r)
	if len(r.problems) != 1 || r.problems[0].Key != path || !strings.Contains(r.problems[0].Message, "it has more than 32 MiB") {
		t.Errorf("problems %q", r.problems)
	}
}

func TestAFIFOIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "annotations")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var r report
	readAnnotations(ReadFile(path), &r)
	if len(r.problems) != 1 || r.problems[0].Key != path || !strings.Contains(r.problems[0].Message, "not a regular file") {
		t.Errorf("problems %q", r.problems)
	}
}

func TestDuplicateAnnotation(t *testing.T) {
	got, r := parse("conjur.org/a=\"1\"\nb=\"1\"\nconjur.org/a=\"2\"\nb=\"2\"\n")
	if got["conjur.org/a"] != "2" || got["b"] != "2" {
		t.Errorf("got %q, want the last values", got)
	}
	if want := "[{conjur.org/a written on line 1 and again on line 3; the last one takes effect}]"; fmt.Sprintf("%s", plain(r.warnings)) != want {
		t.Errorf("warnings %s", plain(r.warnings))
	}
}

// plain makes fmt print the fields and not the error.
func plain(ps []Problem) any {
	type fields Problem
	all := make([]fields, len(ps))
	for i, p := range ps {
		all[i] = fields(p)
	}
	return all
}
