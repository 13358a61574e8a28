package store

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestValuesKeepTwentyVersions(t *testing.T) {
	s, _ := open(t)
	// Neighbours in the order of the keys must not be taken for versions.
	for _, id := range []string{"dev:variable:a", "dev:variable:v", "dev:variable:v/w", "dev:variable:z"} {
		for i := 1; i <= 26; i++ {
			update(t, s, func(tx *Tx) error {
				version, err := tx.SetValue(id, fmt.Appendf(nil, "%s %d", id, i))
				if version != uint64(i) {
					t.Errorf("%s: version %d instead of %d", id, version, i)
				}
				return err
			})
		}
	}
	want := []uint64{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26}
	if err := s.View(func(tx *Tx) error {
		if got := tx.Versions("dev:variable:v"); !slices.Equal(got, want) {
			t.Errorf("versions are %v", got)
		}
		value, version, err := tx.Value("dev:variable:v")
		if string(value) != "dev:variable:v 26" || version != 26 {
			t.Errorf("newest is %q, version %d", value, version)
		}
		old, _ := tx.Version("dev:variable:v", 7)
		gone, _ := tx.Version("dev:variable:v", 6)
		if string(old) != "dev:variable:v 7" || gone != nil {
			t.Errorf("version 7 is %q, version 6 is %q", old, gone)
		}
		if _, version, _ := tx.Value("dev:variable:"); version != 0 {
			t.Errorf("a variable that was never set has version %d", version)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestSettingTheSameMakesNoVersion(t *testing.T) {
	s, _ := open(t)
	for _, c := range []struct {
		value   string
		version uint64
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"one", 3}} {
		update(t, s, func(tx *Tx) error {
			version, err := tx.SetValue("dev:variable:a", []byte(c.value))
			if version != c.version {
				t.Errorf("setting %q gives version %d instead of %d", c.value, version, c.version)
			}
			return err
		})
	}
}

func TestNothingSecretIsReadableInTheFile(t *testing.T) {
	s, path := open(t)
	update(t, s, func(tx *Tx) error {
		if _, err := tx.SetValue("dev:variable:a", []byte("canary-value")); err != nil {
			return err
		}
		if err := tx.PutCredentials("dev:user:admin", &Credentials{APIKey: []byte("canary-api-key")}); err != nil {
			return err
		}
		return tx.PutTokenKey("dev", []byte("canary-token-key"))
	})
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte("dev:variable:a")) {
		t.Error("the file does not hold the variable at all")
	}
	if bytes.Contains(content, []byte("canary")) {
		t.Error("a secret is readable in the file")
	}
}

// A sealed value opens only where it was put: not at another variable and not
// as another version.
func TestValuesAreBoundToTheirPlace(t *testing.T) {
	s, _ := open(t)
	a, b := "dev:variable:a", "dev:variable:b"
	update(t, s, func(tx *Tx) error {
		for _, v := range []string{"one", "two"} {
			for _, id := range []string{a, b} {
				if _, err := tx.SetValue(id, []byte(id+v)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	update(t, s, func(tx *Tx) error {
		sealed := bytes.Clone(tx.values.Get(valueKey(a, 2)))
		if err := tx.values.Put(valueKey(b, 2), sealed); err != nil {
			return err
		}
		return tx.values.Put(valueKey(a, 1), sealed)
	})
	if err := s.View(func(tx *Tx) error {
		if v, _, err := tx.Value(b); err == nil {
			t.Errorf("another variable's value opens: %q", v)
		}
		if v, err := tx.Version(a, 1); err == nil {
			t.Errorf("another version's value opens: %q", v)
		}
		if v, _, err := tx.Value(a); err != nil || string(v) != a+"two" {
			t.Errorf("the value itself is %q, %v", v, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := s.Update(func(tx *Tx) error { _, err := tx.SetValue(b, []byte("three")); return err }); err == nil {
		t.Error("a value that cannot be read is replaced without an error")
	}
}
