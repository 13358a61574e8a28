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
