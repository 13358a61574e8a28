package authn

import (
	"bytes"
	"context"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

// APIKey authenticates a user or host ("host/path/name") by its API key.
type APIKey struct {
	URL   string // empty: {appliance}/authn
	Login string
	Key   secret.Value
	// KeyFile, if set, is read at every authentication instead of Key; white
	// space around the key does not count. A login before the key is who logs in
	// from then on, so that two that are rotated may take turns.
	KeyFile string
}

// Credential implements conjur.Authenticator.
func (a APIKey) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	c := conjur.Credential{URL: a.URL, Login: a.Login, ContentType: "text/plain"}
	if a.KeyFile == "" {
		c.Body = secret.New(bytes.Clone(a.Key.Bytes()))
		return c, nil
	}
	words, err := readWords("API key", a.KeyFile, 2)
	if err != nil {
		return conjur.Credential{}, err
	}
	if len(words) == 2 {
		c.Login, c.Turns = string(words[0]), true
	}
	c.Body = secret.New(words[len(words)-1])
	return c, nil
}
