package certs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/internal/certs"
)

func TestReadRootsNamesTheFileAndTheReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca")
	if _, err := certs.ReadRoots(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.ReadRoots(path); !errors.Is(err, certs.ErrNone) || !strings.HasPrefix(err.Error(), path+" contains no PEM certificate; ") {
		t.Errorf("of a text without a certificate: %v", err)
	}
}

// Line breaks that became two letters are a common mistake, and no parser names it.
func TestEscapedLineBreaksAreNamed(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "ca"), filepath.Join(t.TempDir(), "key")
	for file, text := range map[string]string{path: `-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n`, other: "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, roots := certs.ReadRoots(path)
	_, certificate := certs.ReadPair(path, other)
	_, key := certs.ReadPair(other, path)
	for what, err := range map[string]error{"roots": roots, "certificate": certificate, "key": key} {
		if !errors.Is(err, certs.ErrEscaped) || !strings.HasPrefix(err.Error(), path+` has \n as two letters`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
