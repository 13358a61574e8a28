package definitions_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

func TestParsePermissions(t *testing.T) {
	for text, want := range map[string]fs.FileMode{
		"rw-r--r--":  0o644,
		"-rw-r--r--": 0o644,
		"-rwxrwxrwx": 0o777,
		"-rw-------": 0o600,
		"rw-rw-r-x":  0o665,
	} {
		if got, err := definitions.ParsePermissions(text); err != nil || got != want {
			t.Errorf("%q: got %o, %v, want %o", text, got, err, want)
		}
	}
}

func TestParsePermissionsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":            "not a file mode",
		"0644":        "octal 0644 is rw-r--r--",
		"644":         "octal 644 is rw-r--r--",
		"0999":        "write it like rw-r--r--",
		"drw-r--r--":  "not a file mode",
		"--rw-r--r--": "not a file mode",
		"rws------":   "not a file mode",
		"rw-r--r-t":   "not a file mode",
		"wr-r--r--":   "not a file mode",
		"rwr------":   "not a file mode",
		"rw-r--r":     "not a file mode",
		"r--r--r--":   "owner read and write",
		"-w-r--r--":   "owner read and write",
		"---------":   "owner read and write",
	} {
		got, err := definitions.ParsePermissions(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %o, error %v, want one with %q", text, got, err, want)
		}
	}
}
