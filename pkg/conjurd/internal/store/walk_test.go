package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// busy fills a store by many commits with records of all sizes, and takes many
// away again.
func busy(t *testing.T, s *Store, rnd *rand.Rand, commits int) {
	t.Helper()
	for range commits {
		update(t, s, func(tx *Tx) error {
			var errs []error
			for range rnd.IntN(40) {
				id := fmt.Sprintf("dev:variable:%0*d", 1+rnd.IntN(60), rnd.IntN(1000))
				if rnd.IntN(5) < 2 {
					errs = append(errs, tx.DeleteObjects(id))
					continue
				}
				_, err := tx.SetValue(id, bytes.Repeat([]byte{byte(rnd.IntN(256))}, 1<<rnd.IntN(15)))
				errs = append(errs, err, tx.PutObject(id, &Object{Owner: fmt.Sprint("dev:user:", rnd.IntN(5))}),
					tx.PutPermission(Permission{id, "read", fmt.Sprint("dev:host:", rnd.IntN(100)), "p"}))
			}
			return errors.Join(errs...)
		})
	}
}

// dump returns all records, as bbolt finds them.
func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := s.View(func(tx *Tx) error {
		for _, b := range tx.buckets() {
			for k := range scan(*b, nil) {
				all[(*b).name+" "+k] = string((*b).Get([]byte(k))) // found by its key too
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return all
}

func TestWalkAcceptsWhatWasWritten(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		s, path := open(t)
		for i := range 10 {
			busy(t, s, rnd, 20)
			copied := fmt.Sprint(path, i)
			if err := s.Backup(copied); err != nil {
				t.Fatal(err)
			}
			back, err := Open(copied, Options{Key: testKey})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(dump(t, back), dump(t, s)) {
				t.Error("the copy has other records")
			}
			if err := back.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// damage returns copies of a file, each with something wrong with it.
func damage(rnd *rand.Rand, whole []byte, n int) [][]byte {
	page := os.Getpagesize()
	pages := len(whole) / page
	var out [][]byte
	for i := range n {
		b := bytes.Clone(whole)
		at := rnd.IntN(len(b))
		one, other := rnd.IntN(pages)*page, rnd.IntN(pages)*page
		switch i % 8 {
		case 0, 1, 2: // a bit, in a page's head or anywhere
			b[at] ^= 1 << rnd.IntN(8)
		case 3, 4:
			b[one+rnd.IntN(80)] ^= byte(1 + rnd.IntN(255))
		case 5:
			b = b[:at]
		case 6:
			copy(b[one:one+page], make([]byte, page))
		case 7:
			copy(b[one:one+page], whole[other:])
		}
		out = append(out, b)
	}
	return out
}

// Whatever happened to a file: either it is refused with the reason, or all
// that was in it is there.
func TestDamagedFileIsRefusedOrHarmless(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	s, path := open(t)
	busy(t, s, rnd, 30)
	want := dump(t, s)
	copied := path + ".copy"
	if err := s.Backup(copied); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i, b := range damage(rnd, whole, 160) {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{Key: testKey, NoSync: true})
		if err != nil {
			refused++
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrForeign) {
				t.Errorf("%d: %v", i, err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
				t.Errorf("%d: the file was changed (%v)", i, err)
			}
			continue
		}
		if !maps.Equal(dump(t, s), want) {
			t.Errorf("%d: what is damaged is served", i)
		}
		busy(t, s, rnd, 1)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused < 80 {
		t.Errorf("%d of 160 files were refused", refused)
	}
}

// A byte anywhere that changes what is in the file is noticed.
func TestWalkNoticesEveryRecord(t *testing.T) {
	s, path := open(t)
	busy(t, s, rand.New(rand.NewPCG(5, 6)), 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range dump(t, s) {
		_, k, _ := bytes.Cut([]byte(k), []byte(" "))
		for _, part := range [][]byte{k, []byte(v)} {
			at := bytes.Index(whole, part)
			if len(part) < 20 || bytes.LastIndex(whole, part) != at {
				continue // in the free pages too
			}
			b := bytes.Clone(whole)
			b[at+len(part)/2]++
			w, err := newWalk(bytes.NewReader(b), int64(len(b)))
			if err == nil {
				err = w.identify(*s.seal.Load())
			}
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%q: %v", k, err)
			}
		}
	}
}

func TestFileWithoutChecksumIsForeign(t *testing.T) {
	s, path := open(t)
	if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(metaSum) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(path + ".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path+".old", Options{Key: testKey}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// A file that is cut off under a running server costs requests, not the
// process.
func TestFileCutOffWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s, err := Open(path, Options{Key: testKey, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	busy(t, s, rand.New(rand.NewPCG(9, 10)), 20)
	if err := os.Truncate(path, 3*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	for _, run := range []func(func(*Tx) error) error{s.View, s.Update} {
		if err := run(func(tx *Tx) error { tx.Owned("dev:user:1"); return nil }); err == nil {
			t.Error("no error")
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
