package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// KeySize is the length of a data key in bytes.
const KeySize = 32

// errSealed hides the cause of a failed decryption: altered bytes or a wrong place.
var errSealed = errors.New("a sealed value was altered, or belongs elsewhere")

// sealer encrypts with AES-256-GCM under a random nonce, which precedes the
// ciphertext. The additional data binds a value to its type and owner, so that a
// value moved elsewhere in the file does not open. The first key seals. Every key
// opens.
type sealer struct{ aeads []cipher.AEAD }

// newSealer creates a sealer from concatenated keys.
func newSealer(keys []byte) (s sealer, err error) {
	if len(keys) == 0 || len(keys)%KeySize != 0 {
		return s, fmt.Errorf("the data key has %d bytes instead of %d", len(keys), KeySize)
	}
	for key := range slices.Chunk(keys, KeySize) {
		block, err := aes.NewCipher(key)
		if err != nil {
			return s, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return s, err
		}
		s.aeads = append(s.aeads, aead)
	}
	return s, nil
}

func (s sealer) seal(plain []byte, place string) []byte {
	return s.aeads[0].Seal(nil, nil, plain, []byte(place))
}

// opens reports whether one of the keys opens the sealed bytes.
func (s sealer) opens(sealed []byte, place string) bool {
	_, err := s.open(sealed, place)
	return err == nil
}

func (s sealer) open(sealed []byte, place string) ([]byte, error) {
	for _, aead := range s.aeads {
		if plain, err := aead.Open([]byte{}, nil, sealed, []byte(place)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}

// rekeyBatch is the number of records that one transaction of Rekey examines.
const rekeyBatch = 500

// Rekey seals everything under the first of the concatenated keys. Reads and writes
// continue meanwhile. If Rekey returns nil, no record is sealed under another key.
// After a failure or a crash, the next call resumes.
func (s *Store) Rekey(ctx context.Context, keys []byte) error {
	next, err := newSealer(keys)
	if err != nil {
		return err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		if _, err := next.open(tx.Bucket(bucketMeta).Get(metaCheck), "check"); err != nil {
			return ErrWrongKey
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.seal.Store(&next) // write transactions run one after another
	for again := true; again; {
		again = false
		for _, of := range sealedBuckets {
			for from := []byte(nil); ; {
				err := s.Update(func(tx *Tx) (err error) {
					var resealed bool
					tx.Until(ctx)
					from, resealed, err = tx.reseal(of(tx), from)
					again = again || resealed
					return err
				})
				if err = errors.Join(err, ctx.Err()); err != nil {
					return err
				}
				if from == nil {
					break
				}
			}
		}
	}
	return nil // earlier readers may still need the old keys in memory
}

// sealedBuckets lists the buckets that contain sealed records.
var sealedBuckets = [...]func(*Tx) *bucket{
	func(t *Tx) *bucket { return t.meta }, func(t *Tx) *bucket { return t.credentials }, func(t *Tx) *bucket { return t.values },
}

// reseal reseals the next records that are not under the first key. It returns the
// position at which to resume, or nil at the end.
func (t *Tx) reseal(b *bucket, from []byte) (next []byte, resealed bool, err error) {
	var keys [][]byte
	c := b.Bucket.Cursor() // nothing was written yet
	for k, _ := c.Seek(from); k != nil; k, _ = c.Next() {
		if len(keys) == rekeyBatch {
			next = bytes.Clone(k)
			break
		}
		keys = append(keys, bytes.Clone(k))
	}
	first := sealer{t.seal.aeads[:1]}
	for _, k := range keys {
		done, err := t.resealOne(first, b, k)
		if err != nil {
			return nil, false, fmt.Errorf("record of %s: %w", b.name, err)
		}
		resealed = resealed || done
	}
	return next, resealed, nil
}

func (t *Tx) resealOne(first sealer, b *bucket, k []byte) (done bool, err error) {
	if b == t.credentials {
		c, _, err := get[Credentials](b, k)
		if err != nil || first.opens(c.APIKey, "api key\x00"+string(k)) {
			return false, err
		}
		plain, err := t.Credentials(string(k))
		if err != nil {
			return false, err
		}
		return true, t.PutCredentials(string(k), plain)
	}
	place := "value\x00" + string(k)
	if b == t.meta {
		account, isKey := bytes.CutPrefix(k, prefix("key"))
		switch {
		case isKey:
			place = "token key\x00" + string(account)
		case bytes.Equal(k, metaCheck):
			place = "check"
		default:
			return false, nil
		}
	}
	sealed := b.Get(k)
	if first.opens(sealed, place) {
		return false, nil
	}
	plain, err := t.seal.open(sealed, place)
	if err != nil {
		return false, err
	}
	return true, b.Put(k, t.seal.seal(plain, place))
}
