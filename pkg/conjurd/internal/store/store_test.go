package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var testKey = bytes.Repeat([]byte{7}, KeySize)

// open makes a store in a new folder.
func open(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	s, err := Open(path, Options{Key: testKey, Create: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

func update(t *testing.T, s *Store, f func(*Tx) error) {
	t.Helper()
	if err := s.Update(f); err != nil {
		t.Fatal(err)
	}
}

func TestOpenKeepsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	for i, o := range []Options{{Key: testKey, Create: true}, {Key: testKey}} {
		s, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			update(t, s, func(tx *Tx) error { _, err := tx.SetValue("dev:variable:a", []byte("one")); return err })
		}
		if err := s.View(func(tx *Tx) error {
			value, version, err := tx.Value("dev:variable:a")
			if string(value) != "one" || version != 1 {
				t.Errorf("value %q, version %d", value, version)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v)", info.Mode(), err)
	}
}

// A file that cannot be used is named with the reason and left as it was.
func TestOpenRefusesAndDoesNotTouch(t *testing.T) {
	good := func(t *testing.T) []byte {
		s, path := open(t)
		update(t, s, func(tx *Tx) error {
			for i := range 200 {
				if _, err := tx.SetValue("dev:variable:"+string(rune('a'+i%26))+string(rune('a'+i/26)), bytes.Repeat([]byte{byte(i)}, 999)); err != nil {
					return err
				}
			}
			return nil
		})
		copied := path + ".copy"
		if err := s.Backup(copied); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(copied)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for _, c := range []struct {
		name    string
		content func([]byte) []byte
		key     []byte
		want    error
	}{
		{"wrong key", func(b []byte) []byte { return b }, bytes.Repeat([]byte{8}, KeySize), ErrWrongKey},
		{"cut to half", func(b []byte) []byte { return b[:len(b)/2] }, testKey, ErrTruncated},
		{"cut by a page", func(b []byte) []byte { return b[:len(b)-os.Getpagesize()] }, testKey, ErrTruncated},
		{"cut to nothing", func([]byte) []byte { return nil }, testKey, ErrTruncated},
		{"cut to a few bytes", func(b []byte) []byte { return b[:100] }, testKey, ErrForeign},
		{"text", func([]byte) []byte { return bytes.Repeat([]byte("hello world\n"), 5000) }, testKey, ErrForeign},
		{"zeros", func([]byte) []byte { return make([]byte, 1<<16) }, testKey, ErrForeign},
		{"metadata destroyed", func(b []byte) []byte { copy(b, make([]byte, 2*os.Getpagesize())); return b }, testKey, ErrForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			content := c.content(good(t))
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{Key: c.key, Create: true})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) || err == nil || !bytes.Contains([]byte(err.Error()), []byte(path)) {
				t.Errorf("error is %v", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, content) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func TestOpenOtherErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	if _, err := Open(path, Options{Key: testKey}); !errors.Is(err, ErrNoFile) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	if _, err := Open(path, Options{Key: testKey[:31], Create: true}); err == nil {
		t.Error("a short key is accepted")
	}
	if _, err := Open(dir, Options{Key: testKey}); !errors.Is(err, ErrForeign) {
		t.Errorf("a folder: %v", err)
	}
	s, inUse := open(t)
	_ = s
	if _, err := Open(inUse, Options{Key: testKey}); !errors.Is(err, ErrInUse) {
		t.Errorf("a file in use: %v", err)
	}
}

func TestBackupIsWholeAndNeverOverwrites(t *testing.T) {
	s, path := open(t)
	update(t, s, func(tx *Tx) error { _, err := tx.SetValue("dev:variable:a", []byte("one")); return err })
	if err := s.Backup(path + ".bak"); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx *Tx) error { _, err := tx.SetValue("dev:variable:a", []byte("two")); return err })
	if err := s.Backup(path + ".bak"); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second backup to the same file: %v", err)
	}
	b, err := Open(path+".bak", Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.View(func(tx *Tx) error {
		value, _, err := tx.Value("dev:variable:a")
		if string(value) != "one" {
			t.Errorf("the backup has %q", value)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := s.Backup(filepath.Join(path, "no", "where")); err == nil {
		t.Error("a backup to nowhere succeeds")
	}
}

func TestUpdateLeavesNoTraceOfAFailure(t *testing.T) {
	s, _ := open(t)
	boom := errors.New("boom")
	if err := s.Update(func(tx *Tx) error {
		if _, err := tx.SetValue("dev:variable:a", []byte("one")); err != nil {
			return err
		}
		return boom
	}); !errors.Is(err, boom) {
		t.Fatalf("error is %v", err)
	}
	if err := s.View(func(tx *Tx) error {
		if _, version, _ := tx.Value("dev:variable:a"); version != 0 {
			t.Errorf("version %d is there", version)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestAWriteThatFailsIsAnError: bbolt has no room for the key.
func TestAWriteThatFailsIsAnError(t *testing.T) {
	s, _ := open(t)
	if err := s.Update(func(tx *Tx) error {
		_, err := tx.SetValue("dev:variable:"+strings.Repeat("x", 1<<15), []byte("one"))
		return err
	}); err == nil {
		t.Error("it was written")
	}
}
