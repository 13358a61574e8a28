package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachDecisionIsInTheIndex: the index has one line for each record.
func TestEachDecisionIsInTheIndex(t *testing.T) {
	const folder = "../../docs/decisions"
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(folder, "[0-9]*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records: %v", len(records), err)
	}
	for _, record := range records {
		name := filepath.Base(record)
		if n := strings.Count(string(index), "\n- ["+name[:3]+"]("+name+"): "); n != 1 {
			t.Errorf("%s has %d lines in the index", name, n)
		}
	}
}
