package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// checksum is of all records of a file, in whatever order: the exclusive or of
// their digests, so that a transaction changes it by what it changes. It is
// against damage; who can write the file can write the checksum too.
type checksum [sha256.Size]byte

// toggle puts a record in or, when it is in, takes it out.
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
