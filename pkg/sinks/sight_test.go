package sinks

import (
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestASightShowsWhatWasSeen(t *testing.T) {
	file := stamp{Dev: 1, Ino: 1 << 63, Size: 3, Mtime: -4, Ctime: 5, Mode: 0o640, UID: 6, GID: 7}
	larger := file
	larger.GID++
	for _, seen := range []stamps{{}, {"db": {}}, {"a b/ü": file, "a b/ü/c": {}}} {
		s, ok := parseSight(sight{"a b/ü", targets.FormatYAML, seen.encode()}.version())
		if !ok || s.path != "a b/ü" || s.format != targets.FormatYAML {
			t.Errorf("read as %+v (%v)", s, ok)
		}
		if !s.unchanged(func(name string) (stamp, bool) { return seen[name], true }) {
			t.Errorf("%v does not show itself", seen)
		}
		if len(seen) > 0 && s.unchanged(func(name string) (stamp, bool) { return seen[name], false }) {
			t.Errorf("%v shows what is not known", seen)
		}
		for name := range seen {
			if s.unchanged(func(at string) (stamp, bool) {
				if at == name {
					return larger, true
				}
				return seen[at], true
			}) {
				t.Errorf("%v shows another %s", seen, name)
			}
		}
		if s.there() != (len(seen) == 2) {
			t.Errorf("%v is there: %v", seen, s.there())
		}
	}
	if _, ok := parseSight(""); ok {
		t.Error("nothing was read")
	}
}
