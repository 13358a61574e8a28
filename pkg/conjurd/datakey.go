package conjurd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// DataKeyEnv is the environment variable that holds the data key in base64, as for
// the genuine server.
const DataKeyEnv = "CONJUR_DATA_KEY"

// DataKey returns the key that seals a data file, from the environment variable
// DataKeyEnv or else from the file at path. Both are in base64. If neither exists
// and create is true, it writes a new key to path, readable only by its owner. It
// never overwrites a file.
//
// There may be several keys, separated by white space. The first one seals. The
// others open data that is not resealed yet. DataKey returns them concatenated.
func DataKey(path string, create bool) ([]byte, error) {
	if text, ok := os.LookupEnv(DataKeyEnv); ok {
		return decodeKey([]byte(text), DataKeyEnv)
	}
	if path == "" {
		return nil, fmt.Errorf("no data key: set %s or name a key file", DataKeyEnv)
	}
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return decodeKey(text, path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("data key: %w", err)
	case !create:
		return nil, fmt.Errorf("data key: %w; set %s, or create a key with init", err, DataKeyEnv)
	}
	key := make([]byte, store.KeySize)
	_, _ = rand.Read(key) // never fails
	return key, writeNew(path, append(base64.StdEncoding.AppendEncode(nil, key), '\n'))
}

func decodeKey(text []byte, from string) (keys []byte, err error) {
	for _, field := range bytes.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(string(field))
		if err != nil || len(key) != store.KeySize {
			return nil, fmt.Errorf("data key in %s: not %d bytes in base64", from, store.KeySize)
		}
		keys = append(keys, key...)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("data key in %s: it is empty", from)
	}
	return keys, nil
}

// ErrRekeying means that a data file is already being resealed under another key.
var ErrRekeying = errors.New("a new data key is being brought in already")

// AddDataKey puts a new key before the key in the file at path. Rekey then reseals
// the data under it. AddDataKey returns ErrRekeying if the file already holds
// several keys.
func AddDataKey(path string) error {
	return replaceKeys(path, func(keys []byte) ([]byte, error) {
		if len(keys) > store.KeySize {
			return nil, ErrRekeying
		}
		key := make([]byte, store.KeySize)
		_, _ = rand.Read(key) // never fails
		return append(key, keys...), nil
	})
}

// Rekeying reports whether the file at path holds several keys.
func Rekeying(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("data key: %w", err)
	}
	keys, err := decodeKey(text, path)
	return len(keys) > store.KeySize, err
}

// Rekey reseals all data under the first of the keys that DataKey returns, if there
// are several. The server stays available meanwhile. If Rekey returns true, the
// first key seals all data and is the only key in the file at path. After a failure
// or a crash, the next call resumes.
func (s *Server) Rekey(ctx context.Context, path string) (rekeyed bool, err error) {
	keys, err := DataKey(path, false)
	if err != nil || len(keys) == store.KeySize {
		return false, err
	}
	_, fixed := os.LookupEnv(DataKeyEnv)
	if !fixed { // the new key must be durable before any data sealed under it
		if err := syncFolder(filepath.Dir(path)); err != nil {
			return false, err
		}
	}
	if err := s.store.Rekey(ctx, keys); err != nil || fixed {
		return err == nil, err
	}
	return true, replaceKeys(path, func(there []byte) ([]byte, error) {
		if !bytes.Equal(there, keys) {
			return nil, fmt.Errorf("%s was changed meanwhile", path)
		}
		return keys[:store.KeySize], nil
	})
}

// replaceKeys replaces the keys in a file. It locks the folder, so that no two
// calls run at once.
func replaceKeys(path string, change func([]byte) ([]byte, error)) (err error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }() // closing unlocks it
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	keys, err := decodeKey(text, path)
	if err == nil {
		keys, err = change(keys)
	}
	if err != nil {
		return err
	}
	var lines []byte
	for key := range slices.Chunk(keys, store.KeySize) {
		lines = append(base64.StdEncoding.AppendEncode(lines, key), '\n')
	}
	next := path + ".new"
	// An interrupted call may have left the file.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data key: %w", err)
	}
	if err := writeNew(next, lines); err != nil {
		return err
	}
	return errors.Join(os.Rename(next, path), folder.Sync())
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeNew creates a file that only its owner may read. The file must not exist.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
