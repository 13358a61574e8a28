package store

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
)

// KeySize is the length of a data key in bytes.
const KeySize = 32

// errSealed hides how opening failed: the bytes or the place they were found
// at are not what was sealed.
var errSealed = errors.New("a sealed value was altered, or belongs elsewhere")

// sealer encrypts with AES-256-GCM under a random nonce, which it puts in
// front. What a value is, and of what, is bound in, so that a value moved to
// another place in the file does not open.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	if len(key) != KeySize {
		return sealer{}, fmt.Errorf("the data key has %d bytes instead of %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

func (s sealer) seal(plain []byte, place string) []byte {
	return s.aead.Seal(nil, nil, plain, []byte(place))
}

func (s sealer) open(sealed []byte, place string) ([]byte, error) {
	plain, err := s.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, errSealed
	}
	if plain == nil {
		plain = []byte{}
	}
	return plain, nil
}
