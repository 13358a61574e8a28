package definitions_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

func TestFilePath(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, c := range []struct{ base, text, want string }{
		{"/conjur/secrets", "", "g.yaml"},
		{"/conjur/secrets", "creds.yaml", "creds.yaml"},
		{"/conjur/secrets", "./creds.yaml", "creds.yaml"},
		{"/conjur/secrets", "./", "g.yaml"},
		{"/conjur/secrets", "db/", "db/g.yaml"},
		{"/conjur/secrets", "db//x", "db/x"},
		{"/conjur/secrets", "db/../x", "x"},
		{"/conjur/secrets", "..x", "..x"},
		{"/conjur/secrets", "../secrets/x", "x"},
		{"/conjur/secrets", long, long},
		{"/conjur/secrets/", "x", "x"},
		{"out", "x", "x"},
		{".", "x", "x"},
		{"/", "x", "x"},
	} {
		got, err := definitions.FilePath(c.base, c.text, "g.yaml")
		if err != nil || got != c.want {
			t.Errorf("%s %q: got %q, %v, want %q", c.base, c.text, got, err, c.want)
		}
	}
}

func TestFilePathRefuses(t *testing.T) {
	for _, c := range []struct{ base, text, want string }{
		{"/conjur/secrets", "/etc/x", "absolute"},
		{"/conjur/secrets", "..", "leaves the folder"},
		{"/conjur/secrets", "../", "leaves the folder"},
		{"/conjur/secrets", "../x", "leaves the folder"},
		{"/conjur/secrets", "../secrets-other/x", "leaves the folder"},
		{"/conjur/secrets", "a/../../../etc/x", "leaves the folder"},
		{".", "../x", "leaves the folder"},
		{"/conjur/secrets", ".", "is the folder"},
		{"/conjur/secrets", "a/..", "is the folder"},
		{"/conjur/secrets", "../secrets", "is the folder"},
		{"/conjur/secrets", strings.Repeat("n", 256), "longer than 255 bytes"},
		{"/conjur/secrets", strings.Repeat("n", 256) + "/x", "longer than 255 bytes"},
		{"/conjur/secrets", ".syncer-x", "reserved"},
		{"/conjur/secrets", "d/.syncer-x/y", "reserved"},
		{"/conjur/secrets", "a\x00b", "NUL"},
	} {
		got, err := definitions.FilePath(c.base, c.text, "g.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %q, error %v, want one with %q", c.base, c.text, got, err, c.want)
		}
	}
}
