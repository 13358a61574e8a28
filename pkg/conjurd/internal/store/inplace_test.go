package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data file that another replaces at its path is of no use: nobody would find the
// writes again, and the reads are old.
func TestAReplacedFileIsNotServed(t *testing.T) {
	dir := t.TempDir()
	path, away, copied := filepath.Join(dir, "data"), filepath.Join(dir, "away"), filepath.Join(dir, "copy")
	s, err := Open(path, Options{Key: testKey, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string) error {
		return s.Update(func(tx *Tx) error { _, err := tx.SetValue("dev:variable:a", []byte(value)); return err })
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(set("one"), s.Backup(copied)); err != nil {
		t.Fatal(err)
	}
	nothing := func(*Tx) error { return nil }
	refused := func(when string) {
		t.Helper()
		for what, err := range map[string]error{
			"a write": set("two"), "an empty write": s.Update(nothing), "a read": s.View(nothing), "a try": s.Try(nothing),
			"a backup": s.Backup(filepath.Join(dir, "another")), "a look": s.InPlace(),
		} {
			if !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %s: %v", when, what, err)
			}
		}
	}
	locked := func(when string) {
		t.Helper()
		if other, err := Open(path, Options{Key: testKey, Create: true}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "folder "+dir) {
			t.Errorf("%s: a second server: %v, %v", when, other, err)
		}
	}
	locked("untouched")
	rename(path, away)
	refused("removed")
	locked("removed")
	rename(copied, path)
	refused("replaced")
	locked("replaced")
	rename(path, copied)
	rename(away, path)
	if err := errors.Join(set("two"), s.View(nothing)); err != nil {
		t.Errorf("put back: %v", err)
	}
	err = s.Update(func(tx *Tx) error {
		rename(path, away)
		rename(copied, path)
		_, err := tx.SetValue("dev:variable:a", []byte("three"))
		return err
	})
	if !errors.Is(err, ErrReplaced) {
		t.Errorf("replaced during a write: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s, err = Open(path, Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(set("four"), s.Close()); err != nil {
		t.Error(err)
	}
}
