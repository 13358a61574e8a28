package store

import (
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
