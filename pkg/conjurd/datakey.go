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

// DataKeyEnv names the environment variable with the data key in base64, as
// for the genuine server.
const DataKeyEnv = "CONJUR_DATA_KEY"

// DataKey returns the key that seals a data file: from the environment variable
// DataKeyEnv, or else from the file at path, in base64 both. If there is
// neither and create is set, a new key is written to path, for its owner
// only; it is never written over.
//
// There may be several, with white space between them: the first one seals, and
// the others open what is not sealed anew yet. They are returned one after the
// other.
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
		return nil, fmt.Errorf("data key: %w; set %s, or have a key made with init", err, DataKeyEnv)
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

// ErrRekeying says that a data file is being sealed under another key already.
var ErrRekeying = errors.New("a new data key is being brought in already")

// AddDataKey puts a new key before the one in the file at path. Rekey then has
// the data be sealed under it. With ErrRekeying there are several there.
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

// Rekeying reports whether there are several keys in the file at path.
func Rekeying(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("data key: %w", err)
	}
	keys, err := decodeKey(text, path)
	return len(keys) > store.KeySize, err
}

// Rekey has all data be sealed under the first of the keys that DataKey returns,
// if there are several, while the server goes on. When it reports that it has,
// nothing is left under another one, and the first one is alone in the file at
// path. After a failure or a crash it goes on where it was.
func (s *Server) Rekey(ctx context.Context, path string) (rekeyed bool, err error) {
	keys, err := DataKey(path, false)
	if err != nil || len(keys) == store.KeySize {
		return false, err
	}
	_, fixed := os.LookupEnv(DataKeyEnv)
	if !fixed { // the new key outlasts what is sealed under it
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

// replaceKeys exchanges the keys in a file. The folder is locked meanwhile, so that
// no two do.
func replaceKeys(path string, change func([]byte) ([]byte, error)) (err error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }() // which unlocks it
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
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was cut off
		return fmt.Errorf("data key: %w", err)
	}
	if err := writeNew(next, lines); err != nil {
		return err
	}
	return errors.Join(os.Rename(next, path), folder.Sync())
}

// syncFolder makes a new name in a folder outlast a crash.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeNew writes a file that only its owner may read and that was not there.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("data key: %w", err)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
