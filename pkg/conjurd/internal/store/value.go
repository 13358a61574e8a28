package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// VersionLimit bounds the number of stored versions of a value, as in the genuine
// server.
const VersionLimit = 20

// Value returns the latest value of a variable and its version. The version is 0 if
// the variable was never set.
func (t *Tx) Value(id string) ([]byte, uint64, error) {
	var version uint64
	var sealed []byte
	for k, v := range scan(t.values, prefix(id)) {
		version, sealed = binary.BigEndian.Uint64([]byte(k)), v
	}
	if sealed == nil {
		return nil, 0, nil
	}
	value, err := t.openValue(id, version, sealed)
	return value, version, err
}

// Version returns the value of one version, or nil if it is not stored.
func (t *Tx) Version(id string, version uint64) ([]byte, error) {
	sealed := t.values.Get(valueKey(id, version))
	if sealed == nil {
		return nil, nil
	}
	return t.openValue(id, version, sealed)
}

// Versions lists the stored versions, oldest first.
func (t *Tx) Versions(id string) []uint64 {
	var out []uint64
	for k := range scan(t.values, prefix(id)) {
		out = append(out, binary.BigEndian.Uint64([]byte(k)))
	}
	return out
}

// SetValue sets a variable's latest value, unless the value is unchanged. It
// deletes versions beyond VersionLimit and returns the current version.
func (t *Tx) SetValue(id string, value []byte) (uint64, error) {
	old, version, err := t.Value(id)
	if err != nil {
		return 0, err
	}
	if version > 0 && bytes.Equal(old, value) {
		return version, nil
	}
	version++
	if err := t.fault("value"); err != nil {
		return 0, err
	}
	if err := t.values.Put(valueKey(id, version), t.seal.seal(value, place(id, version))); err != nil {
		return 0, err
	}
	if version <= VersionLimit {
		return version, nil
	}
	return version, t.values.Delete(valueKey(id, version-VersionLimit))
}

func (t *Tx) openValue(id string, version uint64, sealed []byte) ([]byte, error) {
	value, err := t.seal.open(sealed, place(id, version))
	if err != nil {
		return nil, fmt.Errorf("value of %s, version %d: %w", id, version, err)
	}
	return value, nil
}

func (t *Tx) clearValues(id string) error {
	for _, version := range t.Versions(id) {
		if err := t.values.Delete(valueKey(id, version)); err != nil {
			return err
		}
	}
	return nil
}

func valueKey(id string, version uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix(id), version)
}

// place binds a sealed value to its variable and version.
func place(id string, version uint64) string {
	return "value\x00" + string(valueKey(id, version))
}
