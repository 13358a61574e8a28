package conjurd

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// DataKeyEnv names the environment variable with the data key in base64, as
// for the genuine server.
const DataKeyEnv = "CONJUR_DATA_KEY"

// DataKey gives the key that seals a data file: from the environment variable
// DataKeyEnv, or else from the file at path, in base64 both. If there is
// neither and create is set, a new key is written to path, for its owner
// only; it is never written over.
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

func decodeKey(text []byte, from string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != store.KeySize {
		return nil, fmt.Errorf("data key in %s: not %d bytes in base64", from, store.KeySize)
	}
	return key, nil
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
