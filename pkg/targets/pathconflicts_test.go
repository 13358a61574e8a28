package targets

import (
	"strings"
	"testing"
)

func TestPathConflicts(t *testing.T) {
	file := func(group, path string) *Target {
		return &Target{Key: FileKey(group), Group: group, File: File{Path: path}}
	}
	for name, c := range map[string]struct {
		targets []*Target
		group   string // the one to blame; empty: no conflict
	}{
		"apart":               {[]*Target{file("a", "d/x"), file("b", "d/y")}, ""},
		"prefix of a name":    {[]*Target{file("a", "d"), file("b", "de/y")}, ""},
		"one path":            {[]*Target{file("a", "same"), file("b", "same")}, "b"},
		"file as folder":      {[]*Target{file("a", "d"), file("b", "d/e")}, "b"},
		"file as folder, far": {[]*Target{file("a", "d/e/f/g"), file("b", "d")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := PathConflicts(c.targets)
			if c.group == "" {
				if len(got) > 0 {
					t.Errorf("got %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Group != c.group {
				t.Fatalf("got %v, want one of the group %q", got, c.group)
			}
			if text := got[0].Err.Error(); !strings.Contains(text, `"a"`) || !strings.Contains(text, `"b"`) {
				t.Errorf("%q does not name both groups", text)
			}
		})
	}
}
