package store

import (
	"fmt"
	"time"
)

// Credentials are what a user or host proves itself with.
type Credentials struct {
	APIKey       []byte    `json:"api_key,omitempty"` // sealed in the file, plain here
	Password     string    `json:"password,omitempty"`
	RotatedAt    time.Time `json:"rotated_at"`
	RestrictedTo []string  `json:"restricted_to,omitempty"`
	PublicKeys   []string  `json:"public_keys,omitempty"`
}

// Credentials returns role's; nil when it has none.
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

// PutCredentials replaces them.
func (t *Tx) PutCredentials(role string, c *Credentials) error {
	sealed := *c
	sealed.APIKey = t.seal.seal(c.APIKey, "api key\x00"+role)
	return put(t.credentials, []byte(role), sealed)
}

// TokenKey returns the account's key for signing tokens, in the form that it
// was put in; nil when there is no such account.
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

// PutTokenKey keeps it.
func (t *Tx) PutTokenKey(account string, k []byte) error {
	return t.meta.Put(key("key", account), t.seal.seal(k, "token key\x00"+account))
}

// Accounts lists those that have a key.
func (t *Tx) Accounts() []string { return keys(t.meta, prefix("key")) }
