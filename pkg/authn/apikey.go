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
	// space around the key does not count.
	KeyFile string
}

// Credential implements conjur.Authenticator.
func (a APIKey) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	key := bytes.Clone(a.Key.Bytes())
	if a.KeyFile != "" {
		text, err := readWord("API key", a.KeyFile)
		if err != nil {
			return conjur.Credential{}, err
		}
		key = text
	}
	return conjur.Credential{URL: a.URL, Login: a.Login, ContentType: "text/plain", Body: secret.New(key)}, nil
}
