package conjurd

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := DataKey(path, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	made, err := DataKey(path, true)
	if err != nil || len(made) != 32 {
		t.Fatalf("making one: %d bytes, %v", len(made), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	for _, create := range []bool{false, true} {
		if again, err := DataKey(path, create); err != nil || !bytes.Equal(again, made) {
			t.Errorf("reading it back: %v", err)
		}
	}
	other := bytes.Repeat([]byte{5}, 32)
	t.Setenv(DataKeyEnv, base64.StdEncoding.EncodeToString(other))
	if got, err := DataKey(path, false); err != nil || !bytes.Equal(got, other) {
		t.Errorf("from the environment: %v", err)
	}
}

func TestBadDataKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, content := range []string{"", "not base64!", "c2VjcmV0LWJ1dC1zaG9ydA=="} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := DataKey(path, true)
		if err == nil || !strings.Contains(err.Error(), path) || content != "" && strings.Contains(err.Error(), content) {
			t.Errorf("%q: %v", content, err)
		}
		if after, _ := os.ReadFile(path); string(after) != content {
			t.Errorf("%q: the file was changed", content)
		}
		t.Setenv(DataKeyEnv, content)
		if _, err := DataKey(path, false); err == nil || !strings.Contains(err.Error(), DataKeyEnv) {
			t.Errorf("%q in the environment: %v", content, err)
		}
		if err := os.Unsetenv(DataKeyEnv); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := DataKey("", true); err == nil {
		t.Error("a key from nowhere")
	}
}

// TestAnInterruptedRekeyKeepsBothKeys: without the old one, the data would be lost. A key
// of the environment leaves the file as it is.
func TestAnInterruptedRekeyKeepsBothKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	made, err := DataKey(path, true)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Data: filepath.Join(dir, "data"), DataKey: made, Create: true})
	loadRoot(t, s, "- !variable a\n")
	if err := AddDataKey(path); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(name string) {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the file has changed, %v", name, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if rekeyed, err := s.Rekey(ended, path); rekeyed || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %t, %v", rekeyed, err)
	}
	keep("interrupted")
	t.Setenv(DataKeyEnv, strings.TrimSpace(string(want)))
	if rekeyed, err := s.Rekey(t.Context(), path); !rekeyed || err != nil {
		t.Errorf("with keys of the environment: %t, %v", rekeyed, err)
	}
	keep("with keys of the environment")
}
