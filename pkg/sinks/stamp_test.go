package sinks

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each alteration shows in the stamp, also when all but one thing is put back
// as it was.
func TestStamp(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	stat := func() stamp {
		t.Helper()
		info, err := os.Lstat(name)
		must(t, err)
		return stampOf(info)
	}
	must(t, os.WriteFile(name, []byte("text"), 0o600))
	first := stat()
	if first.UID != os.Getuid() || first.Dev == 0 || first != stat() {
		t.Errorf("the stamp is %+v, and then %+v", first, stat())
	}

	must(t, os.Chmod(name, 0o640))
	if s := stat(); s.Mode == first.Mode || s.Size != first.Size || s.Mtime != first.Mtime || s.Ino != first.Ino {
		t.Errorf("a chmod makes %+v of %+v", s, first)
	}
	must(t, os.Truncate(name, 0))
	if s := stat(); s.Size == first.Size || s.Ino != first.Ino {
		t.Errorf("a truncation makes %+v of %+v", s, first)
	}
	must(t, os.Chtimes(name, time.Time{}, time.Unix(1, 0)))
	if s := stat(); s.Mtime == first.Mtime || s.Ino != first.Ino {
		t.Errorf("a touch makes %+v of %+v", s, first)
	}

	must(t, os.Chmod(name, 0o600))
	overwrite(t, name, "TEXT")
	must(t, os.Chtimes(name, time.Time{}, time.Unix(0, first.Mtime)))
	s := stat()
	if s.Ctime == first.Ctime {
		t.Errorf("the time of the change is still %d", s.Ctime)
	}
	if s.Ctime = first.Ctime; s != first {
		t.Errorf("put back, all but the time of the change is %+v, was %+v", s, first)
	}

	must(t, os.WriteFile(name+"2", []byte("text"), 0o600))
	must(t, os.Rename(name+"2", name))
	if s := stat(); s.Ino == first.Ino {
		t.Errorf("another file has %+v, the first %+v", s, first)
	}
}
