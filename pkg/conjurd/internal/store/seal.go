package store

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"slices"
)

// KeySize is the length of a data key in bytes.
const KeySize = 32

// errSealed hides how opening failed: the bytes or the place they were found
// at are not what was sealed.
var errSealed = errors.New("a sealed value was altered, or belongs elsewhere")

// sealer encrypts with AES-256-GCM under a random nonce, which it puts in
// front. What a value is, and of what, is bound in, so that a value moved to
// another place in the file does not open. The first of its keys seals, and each
// opens.
type sealer struct{ aeads []cipher.AEAD }

// newSealer makes one of keys, one after the other.
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

// opens reports whether something is sealed under one of the keys.
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
