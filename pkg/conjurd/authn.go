package conjurd

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// maxCredential bounds bodies that hold a key, a password or a JWT, in bytes.
const maxCredential = 64 << 10

// authenticate returns an access token for an API key.
func (s *Server) authenticate(c *call) reply {
	role := roleOf(c.account(), c.vars["login"])
	key, err := c.body(maxCredential)
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	cred, err := s.credentials(c, role)
	if err != nil {
		return s.broken(c, err)
	}
	ok := keyMatches(cred, key) && allowedFrom(cred, c)
	if !ok {
		if wait := s.gate.wait(c, role); wait > 0 {
			return tooMany(wait)
		}
		s.gate.recordAttempt(c, role, false)
	}
	s.audit.decided(c, "authenticate", role, "", ok)
	if !ok {
		s.refused(c, role, wrong(cred, c, "the API key is wrong"))
		return empty(http.StatusUnauthorized)
	}
	return s.grant(c, policy.Ref(role))
}

// login returns the API key in exchange for a password, or for the key itself.
func (s *Server) login(c *call) reply {
	role, refused := s.basic(c)
	if refused != nil {
		return *refused
	}
	cred, err := s.credentials(c, role)
	if err != nil || cred == nil {
		return s.broken(c, err)
	}
	return textReply(http.StatusOK, string(cred.APIKey))
}

// basic checks the request's basic authentication: login with password or API key.
// The reply is nil if they are correct.
func (s *Server) basic(c *call) (string, *reply) {
	login, secret, ok := c.r.BasicAuth()
	role := roleOf(c.account(), login)
	no := empty(http.StatusUnauthorized)
	if !ok {
		return "", &no
	}
	cred, err := s.credentials(c, role)
	if err != nil {
		no = s.broken(c, err)
		return "", &no
	}
	ok = keyMatches(cred, []byte(secret)) && allowedFrom(cred, c)
	if !ok {
		var wait time.Duration
		if ok, wait = s.tryPassword(c, role, cred, secret); wait > 0 {
			no = tooMany(wait)
			return "", &no
		}
	}
	s.audit.decided(c, "login", role, "", ok)
	if !ok {
		s.refused(c, role, wrong(cred, c, "the password or API key is wrong"))
		return "", &no
	}
	return role, nil
}

// credentials returns the credentials of role, or nil if there is no such role.
func (s *Server) credentials(c *call, role string) (cred *store.Credentials, err error) {
	err = s.view(c.ctx(), func(tx *store.Tx) error {
		cred, err = tx.Credentials(role)
		return err
	})
	return cred, err
}

// keyMatches compares in constant time. The duration does not reveal where the keys
// differ, the length of the key, or whether the role exists.
func keyMatches(cred *store.Credentials, key []byte) bool {
	have := store.Credentials{}
	if cred != nil {
		have = *cred
	}
	a, b := sha256.Sum256(have.APIKey), sha256.Sum256(key)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && cred != nil && len(key) > 0
}

// allowedFrom reports whether the role may log in from the caller's address.
func allowedFrom(cred *store.Credentials, c *call) bool {
	return cred != nil && (len(cred.RestrictedTo) == 0 || slosilo.InAny(c.clientIP(), cred.RestrictedTo))
}

// wrong returns why a log-in with these credentials was refused.
func wrong(cred *store.Credentials, c *call, secret string) error {
	switch {
	case cred == nil:
		return fmt.Errorf("no such user or host exists in the account %q", clip(c.account()))
	case !allowedFrom(cred, c):
		return errors.New("it may not log in from this address")
	}
	return errors.New(secret)
}

func tooMany(wait time.Duration) reply {
	rep := empty(http.StatusTooManyRequests)
	rep.header = map[string]string{"Retry-After": strconv.Itoa(int(wait/time.Second) + 1)}
	return rep
}

// broken answers for an internal failure and records it in the audit log.
func (s *Server) broken(c *call, err error) reply {
	if err == nil {
		err = errors.New("it vanished meanwhile")
	}
	s.audit.broke(c, err)
	return failure()
}
