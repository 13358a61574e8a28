// Package generated compares the files that tests generate with the repository.
package generated

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files anew")

// Updating reports whether the files are written and not compared. It is called
// after flag.Parse.
func Updating() bool { return *update }

// AssertCurrent fails the test unless the file at path has this content, and names the
// command that writes the file. With -update, it writes the file.
func AssertCurrent(t *testing.T, path string, want []byte, command string) {
	t.Helper()
	if Updating() {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale; run %s", path, command)
	}
}
