package certs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	if _, err := certs.ReadRoots(path); !errors.Is(err, certs.ErrNone) || err.Error() != path+": no certificate in PEM form in it" {
		t.Errorf("of a text without a certificate: %v", err)
	}
}
