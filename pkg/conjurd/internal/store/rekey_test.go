package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// A data file is sealed under a new key, with a failure at every commit, while
// others write; nothing is lost, and nothing is left under the old key.
func TestRekey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	commits, failAt := 0, -1
	fail := errors.New("a failure")
	s, err := Open(path, Options{Key: testKey, Create: true, NoSync: true, Fault: func(step string) error {
		if step == "commit" {
			if commits++; commits == failAt {
				return fail
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	const variables = 1100
	name := func(i int) string { return fmt.Sprintf("dev:variable:v%04d", i) }
	update(t, s, func(tx *Tx) error {
		for i := range variables {
			if _, err := tx.SetValue(name(i), []byte(name(i))); err != nil {
				return err
			}
		}
		return errors.Join(tx.PutTokenKey("dev", []byte("token key")), tx.PutCredentials("dev:host:a", &Credentials{APIKey: []byte("api key")}))
	})
	if err := s.Rekey(t.Context(), bytes.Repeat([]byte{9}, KeySize)); !errors.Is(err, ErrWrongKey) {
		t.Errorf("without the present key: %v", err)
	}
	next := bytes.Repeat([]byte{8}, KeySize)
	both := append(bytes.Clone(next), testKey...)
	written := 0
	for n := 1; ; n++ {
		commits, failAt = 0, n
		err := s.Rekey(t.Context(), both)
		if err == nil {
			break
		}
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
		failAt = -1
		update(t, s, func(tx *Tx) error { _, err := tx.SetValue(name(written), []byte("new "+name(written))); return err })
		written++
		if n == 2 { // as after a crash
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			fault := s.fault
			if s, err = Open(path, Options{Key: both, NoSync: true, Fault: fault}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if written < 5 {
		t.Errorf("it failed %d times only", written)
	}
	failAt = -1
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Rekey(ended, both); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := Open(path, Options{Key: testKey}); !errors.Is(err, ErrWrongKey) {
		t.Errorf("with the old key: %v", err)
	}
	if s, err = Open(path, Options{Key: next}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.View(func(tx *Tx) error {
		for i := range variables {
			want := name(i)
			if i < written {
				want = "new " + want
			}
			if got, _, err := tx.Value(name(i)); err != nil || string(got) != want {
				return fmt.Errorf("%s is %q: %w", name(i), got, err)
			}
			if i < written {
				if got, err := tx.Version(name(i), 1); err != nil || string(got) != name(i) {
					return fmt.Errorf("the first version of %s is %q: %w", name(i), got, err)
				}
			}
		}
		key, err := tx.TokenKey("dev")
		c, err2 := tx.Credentials("dev:host:a")
		if err := errors.Join(err, err2); err != nil || string(key) != "token key" || string(c.APIKey) != "api key" {
			return fmt.Errorf("the keys are %q and %+v: %w", key, c, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
