package plane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDirectoryMustBeEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := newPlane(dir, time.Minute, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, %v; want an error with the directory", p, err)
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	p, err := newPlane(dir, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file.Name(), info.Mode(), err)
		}
	}
}
