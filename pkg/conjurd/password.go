package conjurd

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Passwords are stored as PBKDF2-HMAC-SHA256: "salt:hash" in hexadecimal. OWASP
// recommends this number of rounds for the function.
const (
	pbkdf2Rounds = 600_000
	pbkdf2Salt   = 16
)

const weakPassword = "CONJ00046E The password you have chosen does not meet the complexity requirements. " +
	"Choose a password that includes: 12-128 characters, 2 uppercase letters, 2 lowercase letters, 1 digit and 1 special character"

// setPassword changes the caller's password.
func (s *Server) setPassword(c *call) reply {
	role, refused := s.self(c)
	if refused != nil {
		return *refused
	}
	password, err := c.body(maxCredential)
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	if !isStrong(string(password)) {
		return invalid("password", weakPassword)
	}
	hash, err := hashPassword(string(password))
	if err == nil {
		err = s.changeCredentials(c, role, func(cred *store.Credentials) { cred.Password = hash })
	}
	s.audit.decided(c, "password", role, role, err == nil)
	if err != nil {
		return s.broken(c, err)
	}
	return empty(http.StatusNoContent)
}

// rotateKey gives a new API key to the caller, or to a role that the caller may
// update.
func (s *Server) rotateKey(c *call) reply {
	role, refused := s.keyHolder(c, "update")
	if refused != nil {
		return *refused
	}
	key := load.NewAPIKey()
	err := s.changeCredentials(c, role, func(cred *store.Credentials) {
		cred.APIKey, cred.RotatedAt = key, s.now()
	})
	s.audit.decided(c, "rotate", c.role, role, err == nil)
	if err != nil {
		return s.broken(c, err)
	}
	return text(http.StatusOK, string(key))
}

// keyRotated answers with the time of the last rotation of the key.
func (s *Server) keyRotated(c *call) reply {
	role, refused := s.keyHolder(c, "read")
	if refused != nil {
		return *refused
	}
	cred, err := s.credentials(c, role)
	if err != nil || cred == nil {
		return s.broken(c, err)
	}
	return jsonReply(http.StatusOK, struct {
		Role      string `json:"role"`
		Timestamp string `json:"timestamp"`
	}{role, cred.RotatedAt.UTC().Format("2006-01-02T15:04:05Z")})
}

// keyHolder returns the role whose key the request concerns. For the caller itself,
// the request needs the password or the API key. For the role in the role
// parameter, the caller needs the privilege on that role.
func (s *Server) keyHolder(c *call, privilege string) (string, *reply) {
	if _, _, ok := c.r.BasicAuth(); ok {
		role, refused := s.basic(c)
		c.role = role
		if other := c.query.Get("role"); refused == nil && other != "" && fullRole(c, other) != role {
			return s.otherHolder(c, fullRole(c, other), privilege)
		}
		return role, refused
	}
	if _, ok := tokenOf(c.r); !ok {
		no := empty(http.StatusUnauthorized)
		return "", &no
	}
	if no, ok := s.identify(c); !ok {
		return "", &no
	}
	other := fullRole(c, c.query.Get("role"))
	if c.query.Get("role") == "" || other == c.role {
		return "", tooWeak()
	}
	return s.otherHolder(c, other, privilege)
}

// self returns the role that changes its password. The request needs the old
// password or the API key.
func (s *Server) self(c *call) (string, *reply) {
	if _, ok := tokenOf(c.r); !ok {
		return s.basic(c)
	}
	if no, ok := s.identify(c); !ok {
		return "", &no
	}
	return "", tooWeak()
}

// tooWeak answers a request that presents a token where a password or key is
// required.
func tooWeak() *reply {
	no := faultReply(http.StatusUnauthorized, fault{Code: "unauthorized", Message: "Credential strength is insufficient"})
	return &no
}

func (s *Server) otherHolder(c *call, role, privilege string) (string, *reply) {
	no := empty(http.StatusUnauthorized)
	ok := false
	err := s.view(c.ctx(), func(tx *store.Tx) error {
		o, err := tx.Object(role)
		if err != nil {
			return err
		}
		roles := tx.RolesOf(c.role)
		if o == nil || !tx.Visible(roles, role, o) {
			no = faultReply(http.StatusNotFound, fault{Code: "not_found",
				Message: "CONJ00123E Resource '" + c.query.Get("role") + "' requested by role '" + c.role + "' not found"})
			return nil
		}
		cred, err := tx.Credentials(role)
		ok = cred != nil && tx.Allowed(roles, privilege, role, o)
		return err
	})
	if err != nil {
		no = s.broken(c, err)
	}
	if err != nil || !ok {
		return "", &no
	}
	return role, nil
}

// fullRole expands "user:bob" to a full name.
func fullRole(c *call, id string) string {
	if strings.Count(id, ":") < 2 {
		return c.account() + ":" + id
	}
	return id
}

func (s *Server) changeCredentials(c *call, role string, change func(*store.Credentials)) error {
	return s.update(c.ctx(), func(tx *store.Tx) error {
		cred, err := tx.Credentials(role)
		if err != nil {
			return err
		}
		if cred == nil {
			return errors.New(policy.Ref(role).NotFound())
		}
		change(cred)
		return tx.PutCredentials(role, cred)
	})
}

func hashPassword(password string) (string, error) {
	salt := make([]byte, pbkdf2Salt)
	_, _ = rand.Read(salt) // never fails
	sum, err := pbkdf2.Key(sha256.New, password, salt, pbkdf2Rounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	return hex.EncodeToString(salt) + ":" + hex.EncodeToString(sum), nil
}

// tryPassword compares a password while it holds a comparison slot. If there were
// too many failures, it returns the time to wait instead. It counts a failure
// before it releases the slot: otherwise many simultaneous guesses could pass
// before the first one fails.
func (s *Server) tryPassword(c *call, role string, cred *store.Credentials, password string) (ok bool, wait time.Duration) {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-c.ctx().Done():
		return false, 0
	}
	if wait := s.gate.wait(c, role); wait > 0 {
		return false, wait
	}
	ok = passwordMatches(cred, password) && allowedFrom(cred, c)
	s.gate.note(c, role, ok)
	return ok, 0
}

// passwordMatches takes the same time if there is no password or no role, so that
// the duration reveals neither.
func passwordMatches(cred *store.Credentials, password string) bool {
	kept := strings.Repeat("00", pbkdf2Salt) + ":"
	if cred != nil && cred.Password != "" {
		kept = cred.Password
	}
	saltHex, sumHex, _ := strings.Cut(kept, ":")
	salt, err1 := hex.DecodeString(saltHex)
	want, err2 := hex.DecodeString(sumHex)
	got, err3 := pbkdf2.Key(sha256.New, password, salt, pbkdf2Rounds, sha256.Size)
	if errors.Join(err1, err2, err3) != nil {
		return false
	}
	return subtle.ConstantTimeCompare(got, want) == 1
}

// isStrong checks a new password against the genuine server's rules.
func isStrong(p string) bool {
	n := utf8.RuneCountInString(p)
	var upper, lower, digit, special int
	for _, r := range p {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		case unicode.IsDigit(r):
			digit++
		default:
			special++
		}
	}
	return n >= 12 && n <= 128 && upper >= 2 && lower >= 2 && digit >= 1 && special >= 1
}
