// Package fingerprint distinguishes secret values without keeping them.
package fingerprint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"
)

// Fingerprint is an HMAC-SHA-256. The zero Fingerprint means none.
type Fingerprint [sha256.Size]byte

// Maker makes fingerprints. Nobody can test values against one, because its key is random
// and never leaves the Maker. The zero Maker is ready. It is safe for concurrent use.
type Maker struct {
	once   sync.Once
	hashes sync.Pool // each keyed
}

// Make returns the fingerprint of what write writes. Those of two Makers are not
// comparable.
func (m *Maker) Make(write func(hash.Hash)) (f Fingerprint) {
	m.once.Do(func() {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		m.hashes.New = func() any { return hmac.New(sha256.New, key) }
	})
	h := m.hashes.Get().(hash.Hash)
	defer m.hashes.Put(h)
	h.Reset()
	write(h)
	h.Sum(f[:0])
	return f
}
