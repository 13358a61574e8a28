// Package authn implements the authenticators of Conjur, one per file. Each is a
// conjur.Authenticator. It returns the credential that the server exchanges for an
// access token, and never shows that credential in an error.
package authn

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	hostPrefix = "host/"
	// mostRead bounds the size of a credential file.
	mostRead = 1 << 20
	formType = "application/x-www-form-urlencoded"
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
	b, err := safefile.Read(path, mostRead)
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
