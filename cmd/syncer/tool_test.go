package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs a command line in this process, without the environment's Conjur,
// and gives what it wrote and the status it ends with.
func runTool(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	for _, name := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_ACCOUNT", "CONJUR_AUTHN_URL", "CONJUR_AUTHN_LOGIN", "CONJUR_AUTHN_API_KEY", "SYNCER_CONFIG"} {
		t.Setenv(name, "")
	}
	var out, errs bytes.Buffer
	root := newTestCommand()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	if err := root.ExecuteContext(t.Context()); err != nil {
		status = exitStatus(err)
		if !errors.Is(err, errLogged) {
			errs.WriteString(err.Error())
		}
	}
	return out.String(), errs.String(), status
}

// files writes files into a new folder and gives its path.
func files(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// endless never comes to an end, as a pipe from the wrong command.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestInputWithoutAnEndIsRefused(t *testing.T) {
	for _, command := range []string{"validate", "migrate"} {
		var errs bytes.Buffer
		root := newTestCommand()
		root.SetArgs([]string{command, "-f", "-"})
		root.SetIn(endless{})
		root.SetErr(&errs)
		if err := root.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%s takes it", command)
		} else if text := errs.String() + err.Error(); !strings.Contains(text, "standard input: the manifest cannot be read: it has more than 64 MiB") {
			t.Errorf("%s says %q", command, text)
		}
	}
}
