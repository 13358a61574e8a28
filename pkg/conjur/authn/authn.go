// Package authn implements the authenticators of Conjur, one per file. Each is a
// conjur.Authenticator. It returns the credential that the server exchanges for an
// access token, and never shows that credential in an error.
package authn

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	hostPrefix = "host/"
	formType   = "application/x-www-form-urlencoded"
)

// hostLogin returns the login of a host. The prefix "host/" is optional in its
// argument.
func hostLogin(login string) string {
	if login == "" || strings.HasPrefix(login, hostPrefix) {
		return login
	}
	return hostPrefix + login
}

// tokenForm returns the body that carries a token.
func tokenForm(token []byte) secret.Value { return secret.New(append([]byte("jwt="), token...)) }

// readWord reads a file and trims the white space around its text, which the server
// would reject.
func readWord(what, path string) ([]byte, error) {
	words, err := readWords(what, path, 1)
	if err != nil {
		return nil, err
	}
	return words[0], nil
}

// readWords reads a file of at most most words, and at least one.
func readWords(what, path string, most int) ([][]byte, error) {
	b, err := safefile.Read(path, safefile.MaxInput)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	words := bytes.Fields(b)
	switch {
	case len(words) == 0:
		return nil, fmt.Errorf("%s: file %s is empty", what, path)
	case len(words) > most || bytes.ContainsRune(b, 0):
		clear(b)
		return nil, fmt.Errorf("%s: file %s holds more than %s", what, path, map[int]string{1: "one word", 2: "a login and its key"}[most])
	}
	return words, nil
}

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

// JWT authenticates by a JSON Web Token, such as a Kubernetes service account
// token.
type JWT struct {
	URL       string // as in https://host/authn-jwt/service
	TokenPath string // path of the file with the token
	Login     string // usually empty, because the token names the identity
}

// Credential implements conjur.Authenticator.
func (j JWT) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	token, err := readWord("JWT", j.TokenPath)
	if err != nil {
		return conjur.Credential{}, err
	}
	defer clear(token)
	return conjur.Credential{URL: j.URL, Login: j.Login, ContentType: formType, Body: tokenForm(token)}, nil
}

// Cert authenticates by a client certificate from files. It reads them at every
// authentication.
type Cert struct {
	URL               string // as in https://host/authn-cert/service
	Login             string // empty if the certificate names the identity
	CertFile, KeyFile string // PEM; CertFile may include intermediates

	last *tls.Certificate // the last certificate in use
}

// Credential implements conjur.Authenticator. Files that do not match may be in the
// middle of a replacement. In that case it continues to use the previous
// certificate, if there is one.
func (c *Cert) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	pair, err := certs.ReadPair(c.CertFile, c.KeyFile)
	switch {
	case err == nil:
		c.last = &pair
	case c.last == nil:
		return conjur.Credential{}, fmt.Errorf("client certificate %s with the key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return conjur.Credential{URL: c.URL, Login: hostLogin(c.Login), Certificate: c.last}, nil
}
