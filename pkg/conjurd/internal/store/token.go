package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// FactoryToken permits its bearer to create hosts with a host factory.
type FactoryToken struct {
	Factory   string    `json:"factory"`
	ExpiresAt time.Time `json:"expires_at"`
	CIDR      []string  `json:"cidr"` // networks from which it may be used; empty means any
}

// tokenKey returns a digest, so that a reader of the file cannot use the token.
func tokenKey(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return []byte(hex.EncodeToString(sum[:]))
}

// PutFactoryToken stores a token and deletes expired ones.
func (t *Tx) PutFactoryToken(token string, f FactoryToken, now time.Time) error {
	err := t.deleteTokens(func(old FactoryToken) bool { return !now.Before(old.ExpiresAt) })
	if err != nil {
		return err
	}
	return put(t.tokens, tokenKey(token), f)
}

// FactoryToken returns the record of a token, or nil if the token is unknown.
func (t *Tx) FactoryToken(token string) (*FactoryToken, error) {
	f, ok, err := get[FactoryToken](t.tokens, tokenKey(token))
	if !ok {
		return nil, err
	}
	return &f, nil
}

// DeleteFactoryToken revokes a token.
func (t *Tx) DeleteFactoryToken(token string) error { return t.tokens.Delete(tokenKey(token)) }

func (t *Tx) deleteTokens(gone func(FactoryToken) bool) error {
	var names []string
	for k, v := range scan(t.tokens, nil) {
		var f FactoryToken
		if err := json.Unmarshal(v, &f); err != nil {
			return err
		}
		if gone(f) {
			names = append(names, k)
		}
	}
	for _, name := range names {
		if err := t.tokens.Delete([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}
