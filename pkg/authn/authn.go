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
	b, err := safefile.Read(path, mostRead)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	text := bytes.TrimSpace(b)
	if len(text) == 0 {
		return nil, fmt.Errorf("%s: file %s is empty", what, path)
	}
	if bytes.ContainsAny(text, " \t\r\n\x00") {
		clear(b)
		return nil, fmt.Errorf("%s: file %s holds more than one word", what, path)
	}
	return text, nil
}
