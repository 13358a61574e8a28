//go:build long

package soak

import (
	"encoding/base64"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
)

// economy has the collector run whenever a tenth has been added to what is
// alive, instead of as much again. What the heap takes then follows what is
// alive, so that a small leak is seen early.
const economy = "GOGC=10"

// spawn starts syncer. At the end of the test its output is searched for
// values.
func spawn(t testing.TB, env []string, args ...string) *proctest.Process {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(env, economy, "GOMAXPROCS=2")
	p := proctest.Start(t, cmd, nil)
	t.Cleanup(func() {
		if found := leak(p.Log()); found != "" {
			t.Errorf("a value is in the output: %s", found)
		}
	})
	return p
}

// marker begins each value of a variable.
const marker = "canary-value-"

// leak finds a value, or its base64 or hexadecimal form, in a text.
func leak(text string) string {
	forms := []string{marker, hex.EncodeToString([]byte(marker))}
	for before := range 3 { // bytes that share the encoding's groups of three
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("?", before) + marker))
		first, end := (8*before+5)/6, 8*(before+len(marker))/6
		forms = append(forms, encoded[first:end])
	}
	for _, form := range forms {
		if at := strings.Index(text, form); at >= 0 {
			return text[at:min(at+len(form)+10, len(text))]
		}
	}
	return ""
}

func TestLeakIsFound(t *testing.T) {
	value := marker + "ABCDEF"
	for _, text := range []string{
		value,
		hex.EncodeToString([]byte("=" + value)),
		base64.StdEncoding.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte("a" + value)),
		base64.StdEncoding.EncodeToString([]byte("ab" + value + "c")),
	} {
		if leak("before "+text+" after") == "" {
			t.Errorf("the value is not found in %q", text)
		}
	}
	if found := leak("a canary, a value, and no more"); found != "" {
		t.Errorf("found %q where no value is", found)
	}
}
