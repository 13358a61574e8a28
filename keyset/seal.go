package keyset

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Seal encrypts plain by AES-256-GCM under the part "key" of the primary key, which
// must have 32 bytes. It returns <id>:<iv>:<ciphertext>, with the last two in
// standard base64. The ID and extra are authenticated. extra is not in the result,
// and Open needs the same value. It should identify the text's owner, such as its
// table, row and column. One key seals at most 2³² texts.
func (s *Set) Seal(plain, extra []byte) (string, error) {
	key := s.Primary()
	if key.aead == nil {
		return "", fmt.Errorf("key set %s: the primary key %s has no part \"key\" of 32 bytes", s.folder, key.ID)
	}
	iv := make([]byte, key.aead.NonceSize())
	rand.Read(iv) // never fails
	sealed := key.aead.Seal(nil, iv, plain, authenticated(key.ID, extra))
	text := base64.StdEncoding.EncodeToString
	return key.ID + ":" + text(iv) + ":" + text(sealed), nil
}

// Open returns the text that Seal received. It returns an error if the key is not
// in the set, or if the text or extra differs from Seal's. No error says which
// bytes differ.
func (s *Set) Open(sealed string, extra []byte) ([]byte, error) {
	head, text, ok := cutEnd(sealed)
	id, iv, ok2 := cutEnd(head)
	if !ok || !ok2 {
		return nil, errors.New("a sealed text has the form <id>:<iv>:<ciphertext>")
	}
	key, ok := s.ByID(id)
	if !ok {
		return nil, fmt.Errorf("key set %s: no key %q", s.folder, id)
	}
	if key.aead == nil {
		return nil, fmt.Errorf("key set %s: key %s has no part \"key\" of 32 bytes", s.folder, id)
	}
	decode := base64.StdEncoding.Strict().DecodeString
	nonce, err := decode(iv)
	if err != nil || len(nonce) != key.aead.NonceSize() {
		return nil, fmt.Errorf("sealed text under key %s: its iv is not %d bytes in base64", id, key.aead.NonceSize())
	}
	cipher, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("sealed text under key %s: its ciphertext is not base64", id)
	}
	plain, err := key.aead.Open(nil, nonce, cipher, authenticated(id, extra))
	if err != nil {
		return nil, fmt.Errorf("sealed text under key %s: it was altered, or belongs to something else", id)
	}
	return plain, nil
}

// authenticated joins an ID, which contains no dot, and extra. The result is unique
// to the pair.
func authenticated(id string, extra []byte) []byte {
	return append([]byte(id+"."), extra...)
}

// cutEnd splits at the last colon, because an ID may contain colons.
func cutEnd(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", "", false
	}
	return text[:i], text[i+1:], true
}
