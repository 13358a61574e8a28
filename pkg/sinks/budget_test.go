package sinks

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// What goes beyond the limit is refused by its name; the others go on, and it is
// taken when there is room.
func TestLimitOfAllFiles(t *testing.T) {
	dir := memoryDir(t)
	f := NewFiles(dir, nil)
	f.Limit(10)
	give := func(name string, n int) error {
		c := rewrite(WholeFile, strings.Repeat("x", n))
		if n == 0 {
			c = removal(WholeFile)
		}
		_, err := f.Apply(t.Context(), record(name), c)
		return err
	}
	refused := func(name string, n int) {
		t.Helper()
		if err := give(name, n); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "secretsSizeLimit") {
			t.Errorf("%d bytes for %s: %v", n, name, err)
		}
	}
	taken := func(name string, n int) {
		t.Helper()
		if err := give(name, n); err != nil {
			t.Errorf("%d bytes for %s: %v", n, name, err)
		}
	}
	taken("a", 6)
	refused("b", 5)
	taken("b", 4)
	refused("a", 7)
	taken("a", 2)
	taken("b", 8)
	taken("b", 0)
	if err := give("a/c", 8); err == nil { // a is a file
		t.Error("a file below a file is written")
	}
	taken("a", 10) // what failed takes no room

	next := NewFiles(dir, nil) // knows what is there once it was read
	next.Limit(9)
	state, err := next.Read(t.Context(), record("a"))
	if err != nil || len(state.Parts) != 1 {
		t.Fatalf("%v, %v", state, err)
	}
	f = next
	refused("b", 1)
	taken("a", 9) // what is less than before is never refused
}

func record(name string) records.Record {
	target := fileTarget(name, 0o600)
	target.Key = targets.FileKey(name)
	return records.Record{Spec: target}
}
