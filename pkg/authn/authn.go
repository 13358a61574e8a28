// Package authn has the ways to log in to Conjur, a file for each. Each is a
// conjur.Authenticator: it returns what the server exchanges for an access
// token, and never shows it in an error.
package authn

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	hostPrefix = "host/"
	// mostRead bounds what is read of a file with a credential.
	mostRead = 1 << 20
	formType = "application/x-www-form-urlencoded"
)

// hostLogin is the login of a host, which may be written without its kind.
func hostLogin(login string) string {
	if login == "" || strings.HasPrefix(login, hostPrefix) {
		return login
	}
	return hostPrefix + login
}

// tokenForm is the body that carries a token.
func tokenForm(token []byte) secret.Value { return secret.New(append([]byte("jwt="), token...)) }

// readWord reads a file without the white space around its text, which the
// server does not forgive.
func readWord(what, path string) ([]byte, error) {
	words, err := readWords(what, path, 1)
	if err != nil {
		return nil, err
	}
	return words[0], nil
}

// readWords reads a file of one word, or of a few at most.
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
