package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Credentials authenticate a user or host.
type Credentials struct {
	APIKey       []byte    `json:"api_key,omitempty"` // encrypted in the file, plain here
	Password     string    `json:"password,omitempty"`
	RotatedAt    time.Time `json:"rotated_at"`
	RestrictedTo []string  `json:"restricted_to,omitempty"`
	PublicKeys   []string  `json:"public_keys,omitempty"`
}

// Credentials returns the credentials of role, or nil if it has none.
func (t *Tx) Credentials(role string) (*Credentials, error) {
	c, ok, err := get[Credentials](t.credentials, []byte(role))
	if !ok {
		return nil, err
	}
	c.APIKey, err = t.seal.open(c.APIKey, "api key\x00"+role)
	if err != nil {
		return nil, fmt.Errorf("API key of %s: %w", role, err)
	}
	return &c, nil
}

// PutCredentials replaces the credentials of role.
func (t *Tx) PutCredentials(role string, c *Credentials) error {
	sealed := *c
	sealed.APIKey = t.seal.seal(c.APIKey, "api key\x00"+role)
	return put(t.credentials, []byte(role), sealed)
}

// TokenKey returns the account's token signing key, as PutTokenKey received it. It
// returns nil if there is no such account.
func (t *Tx) TokenKey(account string) ([]byte, error) {
	sealed := t.meta.Get(key("key", account))
	if sealed == nil {
		return nil, nil
	}
	k, err := t.seal.open(sealed, "token key\x00"+account)
	if err != nil {
		return nil, fmt.Errorf("token key of account %s: %w", account, err)
	}
	return k, nil
}

// PutTokenKey stores the account's token signing key.
func (t *Tx) PutTokenKey(account string, k []byte) error {
	return t.meta.Put(key("key", account), t.seal.seal(k, "token key\x00"+account))
}

// Accounts lists the accounts that have a token signing key.
func (t *Tx) Accounts() []string { return keys(t.meta, prefix("key")) }

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
