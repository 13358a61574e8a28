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
	// KeyFile, if set, replaces Key. It is read at every authentication. White
	// space around the key is ignored. A login before the key replaces Login from
	// then on, so that a rotation can alternate between two identities.
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
		c.Login, c.Alternates = string(words[0]), true
	}
	c.Body = secret.New(words[len(words)-1])
	return c, nil
}
