package conjurd

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// A disk that is full when a set is committed changes nothing, neither for
// readers nor in the file, and the server goes on when there is room again.
func TestFullDiskUndoesASet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	o := Options{Account: "dev", Data: path, DataKey: bytes.Repeat([]byte{9}, 32), Create: true}
	s := open(t, o)
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "old a")
	set(t, s, "app/b", "old b")
	q := request{method: "PUT", path: "/secrets/dev/values", as: "admin",
		body: `{"secrets":[{"id":"app/a","value":"new a"},{"id":"app/b","value":"new b"}]}`}
	restore := fillDisk(t, path)
	if w := send(t, s, q); w.Code != http.StatusInternalServerError {
		t.Errorf("with a full disk: status %d", w.Code)
	}
	if w := send(t, s, request{method: "POST", path: "/secrets/dev/variable/app/a", as: "admin", body: "x"}); w.Code != http.StatusInternalServerError {
		t.Errorf("a single set with a full disk: status %d", w.Code)
	}
	if v := values(t, s, "app/a", "app/b"); !slices.Equal(v, []string{"old a", "old b"}) {
		t.Errorf("with a full disk: values %q", v)
	}
	restore()
	if v := values(t, s, "app/a", "app/b"); !slices.Equal(v, []string{"old a", "old b"}) {
		t.Errorf("with room again: values %q", v)
	}
	if w := send(t, s, q); w.Code != http.StatusOK {
		t.Errorf("with room again: status %d", w.Code)
	}
	if v := values(t, s, "app/a", "app/b"); !slices.Equal(v, []string{"new a", "new b"}) {
		t.Errorf("after the set: values %q", v)
	}
}

// fillDisk makes every write to the open file fail with ENOSPC, until the
// function that it gives is called.
func fillDisk(t *testing.T, path string) (restore func()) {
	t.Helper()
	fd := descriptor(t, path)
	full, err := syscall.Open("/dev/full", syscall.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup3(full, fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := syscall.Dup3(kept, fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		for _, fd := range []int{kept, full} {
			if err := syscall.Close(fd); err != nil {
				t.Error(err)
			}
		}
	}
}

// descriptor finds this process's descriptor of the file.
func descriptor(t *testing.T, path string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == path {
			fd, err := strconv.Atoi(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}
	}
	t.Fatalf("%s is not open", path)
	return -1
}
