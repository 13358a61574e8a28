package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// checksum covers all records of a file in any order: it is the exclusive or of
// their digests. Therefore a transaction updates it from its own changes. It
// detects damage. It does not detect tampering, because anyone who can write the
// file can write the checksum.
type checksum [sha256.Size]byte

// toggle adds a record, or removes it if it is included already.
func (c *checksum) toggle(bucket string, k, v []byte) {
	h := sha256.New()
	var n [8]byte
	for _, part := range [...][]byte{[]byte(bucket), k} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Write(v)
	var sum checksum
	h.Sum(sum[:0])
	subtle.XORBytes(c[:], c[:], sum[:])
}
