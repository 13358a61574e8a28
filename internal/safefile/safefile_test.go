package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestWhatIsNoRegularFileIsRefusedWithoutWaiting(t *testing.T) {
	dir := t.TempDir()
	root, err := safefile.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	must(t, os.Symlink("fifo", filepath.Join(dir, "link")))
	for _, name := range []string{"fifo", "folder", "link"} {
		if _, err := safefile.Read(filepath.Join(dir, name), 10); !errors.Is(err, safefile.ErrNotRegular) {
			t.Errorf("Read of a %s: %v", name, err)
		}
		if _, err := safefile.ReadIn(root, name, 10); !errors.Is(err, safefile.ErrNotRegular) {
			t.Errorf("ReadIn of a %s: %v", name, err)
		}
	}
	if _, err := safefile.Read("/dev/zero", 10); !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("Read of a device: %v", err)
	}
}

func TestReadHasABound(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "file"), strings.Repeat("x", 1<<20))
	if text, err := safefile.Read(path, 1<<20); err != nil || len(text) != 1<<20 {
		t.Errorf("a file as large as allowed: %d bytes, %v", len(text), err)
	}
	must(t, os.Truncate(path, 1<<40)) // takes no space
	if _, err := safefile.Read(path, 1<<20); err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
}

func TestAMountedFileIsReadThroughItsLinksAndOneInAFolderIsNot(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "text")
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	if text, err := safefile.Read(filepath.Join(dir, "link"), 10); err != nil || string(text) != "text" {
		t.Errorf("through a link: %q, %v", text, err)
	}
	root, err := safefile.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	if text, err := safefile.ReadIn(root, "file", 10); err != nil || string(text) != "text" {
		t.Errorf("in a folder: %q, %v", text, err)
	}
	if _, err := safefile.ReadIn(root, "link", 10); !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("in a folder through a link: %v", err)
	}
	if _, err := safefile.Read(filepath.Join(dir, "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestAFIFOInPlaceOfAFolderIsRefusedWithoutWaiting(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	if _, err := safefile.OpenRoot(filepath.Join(dir, "fifo")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("OpenRoot: %v", err)
	}
	root, err := safefile.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	if _, err := safefile.OpenRootIn(root, "fifo"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("OpenRootIn: %v", err)
	}
	below, err := safefile.OpenRootIn(root, "folder")
	must(t, err)
	must(t, below.Close())
}

func TestOnlyNamesOfTempNameAreTemporary(t *testing.T) {
	if name := safefile.TempName(); !safefile.IsTempName(name) || name == safefile.TempName() {
		t.Errorf("%s", name)
	}
	for _, name := range []string{"", ".syncer-", ".syncer-x", "x" + safefile.TempName(), safefile.TempName() + "A", strings.ToLower(safefile.TempName())} {
		if safefile.IsTempName(name) {
			t.Errorf("%q counts as temporary", name)
		}
	}
}

// TestBounds: each way to read takes as many bytes as allowed, and no more.
func TestBounds(t *testing.T) {
	const most = 1000
	dir := t.TempDir()
	root, err := safefile.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	for less := -1; less <= 1; less++ {
		text := strings.Repeat("x", most+less)
		path := write(t, filepath.Join(dir, "file"), text)
		for how, read := range map[string]func() ([]byte, error){
			"Read":      func() ([]byte, error) { return safefile.Read(path, most) },
			"ReadIn":    func() ([]byte, error) { return safefile.ReadIn(root, "file", most) },
			"ReadInput": func() ([]byte, error) { return safefile.ReadInput(path, most) },
			"ReadAll":   func() ([]byte, error) { return safefile.ReadAll(strings.NewReader(text), path, most) },
		} {
			if got, err := read(); (err == nil) != (less <= 0) || err == nil && string(got) != text {
				t.Errorf("%s of the bound%+d: %d bytes, %v", how, less, len(got), err)
			}
		}
	}
}

func TestReplaceLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		must(t, safefile.Replace(path, []byte(text)))
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != text || info.Mode() != 0o600 {
			t.Errorf("%q, %v, %v", got, info, err)
		}
	}
	must(t, os.Remove(path))
	must(t, os.MkdirAll(filepath.Join(path, "folder"), 0o755)) // no file can replace it
	if err := safefile.Replace(path, nil); err == nil {
		t.Error("a folder is replaced")
	}
	if err := safefile.Replace(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
