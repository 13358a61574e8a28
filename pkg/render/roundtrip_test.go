package render

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joho/godotenv"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/targets"
)

// A reader is one that this package has no part in: alias → value.
type reader func(t *testing.T, content []byte) map[string]string

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		format targets.Format
		refuse func(value string) bool // the values that the format may refuse
		reader reader
		// differs: the values that the reader may read otherwise; nil: none.
		differs func(value string) bool
	}{
		{targets.FormatYAML, notUTF8, readYAML, nil},
		{targets.FormatYAML, notUTF8, readKubernetesYAML, nil},
		{targets.FormatJSON, notUTF8, readJSON, nil},
		{targets.FormatDotenv, refusedByDotenv, readDotenv, nil},
		{targets.FormatDotenv, refusedByDotenv, readShell("sh", "C"), differsInShell},
		{targets.FormatDotenv, refusedByDotenv, readShell("bash", "C.UTF-8"), differsInShell},
		{targets.FormatBash, withNUL, readShell("sh", "C"), nil},
		{targets.FormatBash, withNUL, readShell("sh", "C.UTF-8"), nil},
		{targets.FormatBash, withNUL, readShell("bash", "C"), nil},
		{targets.FormatBash, withNUL, readShell("bash", "C.UTF-8"), nil},
		{targets.FormatProperties, notUTF8, readQuotedProperties, nil},
		{targets.FormatJavaProperties, notUTF8, readProperties, nil},
		{targets.FormatEnvFile, refusedByEnvFile, readEnvFile, nil},
		{targets.FormatKubernetesEnv, refusedByKubernetesEnv, readShell("sh", "C"), nil},
	} {
		name := string(c.format)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roundTrip(t, c.format, c.refuse, c.reader, c.differs)
		})
	}
}

// roundTrip renders the hostile values, many in a file, and reads them back.
func roundTrip(t *testing.T, format targets.Format, refuse func(string) bool, read reader, differs func(string) bool) {
	const inFile = 500
	values, refused := hostileValues(), 0
	for len(values) > 0 {
		n := min(inFile, len(values))
		var pairs []string
		want := map[string]string{}
		for i, value := range values[:n] {
			alias := fmt.Sprintf("k%d", i)
			target, items := target(format, alias, value)
			if _, err := Render(target, "", items); err != nil {
				checkRefusal(t, format, alias, value, refuse, err)
				refused++
				continue
			}
			pairs = append(pairs, alias, value)
			want[alias] = value
		}
		values = values[n:]
		got := read(t, []byte(file(t, format, "", pairs...)))
		for alias, value := range want {
			if got[alias] != value && (differs == nil || !differs(value)) {
				t.Errorf("%s reads %.100q as %.100q", format, value, got[alias])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s reads %d entries, want %d", format, len(got), len(want))
		}
	}
	if refused > hostileCount/2 {
		t.Errorf("%d of %d values are refused", refused, hostileCount)
	}
}

// checkRefusal checks that a value is refused for a reason, and that the error
// is of use and shows nothing.
func checkRefusal(t *testing.T, format targets.Format, alias, value string, refuse func(string) bool, err error) {
	t.Helper()
	if !refuse(value) {
		t.Errorf("%s refuses %.100q: %v", format, value, err)
	}
	text := err.Error()
	if !strings.Contains(text, "format "+string(format)) || !strings.Contains(text, fmt.Sprintf("%q", alias)) || !strings.Contains(text, "; use ") {
		t.Errorf("the error must name format and alias and say what to use instead: %s", text)
	}
	if len(value) > 8 && strings.Contains(text, value) {
		t.Errorf("the error shows the value %q", value)
	}
}

func notUTF8(value string) bool { return !utf8.ValidString(value) }
func withNUL(value string) bool { return strings.Contains(value, "\x00") }

func refusedByDotenv(value string) bool {
	return withNUL(value) || strings.HasSuffix(value, `\`) || strings.HasSuffix(value, `"`)
}

// differsInShell: what dotenv writes for godotenv alone. A shell must read the
// other lines of the file all the same.
func differsInShell(value string) bool {
	return strings.Contains(value, "\r") || strings.HasSuffix(value, `\`)
}

func refusedByEnvFile(value string) bool {
	quoted := len(value) > 1 && value[0] == value[len(value)-1] && strings.ContainsAny(value[:1], `"'`)
	return notUTF8(value) || withNUL(value) || quoted || len(value) > 65000 || strings.Contains(value, "\n") || strings.HasSuffix(value, "\r")
}

// refusedByKubernetesEnv: test/clients/kubelet has the kubelet's own parser.
func refusedByKubernetesEnv(value string) bool {
	return value == "" || notUTF8(value) || withNUL(value) || len(value) > 65000 || strings.Contains(value, "'") || strings.Contains(value, "\r\n")
}

func readJSON(t *testing.T, content []byte) map[string]string {
	got := map[string]string{}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Error(err)
	}
	return got
}

func readYAML(t *testing.T, content []byte) map[string]string {
	got := map[string]string{}
	if err := yaml.Unmarshal(content, &got); err != nil {
		t.Error(err)
	}
	return got
}

func readKubernetesYAML(t *testing.T, content []byte) map[string]string {
	got := map[string]string{}
	if err := sigsyaml.UnmarshalStrict(content, &got); err != nil {
		t.Error(err)
	}
	return got
}

func readDotenv(t *testing.T, content []byte) map[string]string {
	got, err := godotenv.UnmarshalBytes(content)
	if err != nil {
		t.Errorf("godotenv: %.200v", err)
	}
	return got
}

// readShell makes a reader that sources the file in a shell, which prints the
// variables between NUL bytes. The shell finds no command to run and would
// name one that it is made to look for.
func readShell(shell, locale string) reader {
	return func(t *testing.T, content []byte) map[string]string {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Fatal(err)
		}
		sourced := filepath.Join(t.TempDir(), "env")
		if err := os.WriteFile(sourced, content, 0o600); err != nil {
			t.Fatal(err)
		}
		script := `. "$1"; i=0; while [ $i -lt 500 ]; do
			if eval "[ \"\${k$i+set}\" ]"; then eval "printf 'k%s=%s\\000' $i \"\$k$i\""; fi; i=$((i+1)); done`
		cmd := exec.Command(path, "-c", script, shell, sourced)
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"LC_ALL=" + locale, "PATH=/nonexistent", "HOME=/nonexistent", "NAME=expanded"}
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		if err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v: %.300s", shell, err, complaints.String())
		}
		if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
			t.Errorf("%s: sourcing the file makes others: %v, %v", shell, made, err)
		}
		got := map[string]string{}
		for _, line := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			alias, value, _ := strings.Cut(line, "=")
			got[alias] = value
		}
		return got
	}
}
