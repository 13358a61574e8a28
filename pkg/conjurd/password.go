package conjurd

import (
	"cmp"
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

// setPassword changes the caller's password. Hosts have none.
func (s *Server) setPassword(c *call) reply {
	if refused := s.caller(c); refused != nil {
		return *refused
	}
	rep := s.snapshot(c, func(tx *store.Tx, _ store.Roles) (reply, error) {
		role, refused := c.subject(tx)
		switch {
		case refused != nil:
			return *refused, nil
		case role != c.role:
			return empty(http.StatusUnauthorized), nil
		case policy.Ref(role).Kind() == "host":
			return forbidden(c), nil
		}
		return reply{}, nil
	})
	if rep.status != 0 {
		return rep
	}
	password, err := c.body(maxCredential)
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	if !isStrong(string(password)) {
		return invalid("password", weakPassword)
	}
	hash, err := hashPassword(string(password))
	if err != nil {
		return s.broken(c, err)
	}
	rep = s.change(c, func(tx *store.Tx, _ store.Roles) (reply, error) {
		cred, err := tx.Credentials(c.role)
		if err != nil || cred == nil {
			return reply{}, cmp.Or(err, errNoCredentials)
		}
		cred.Password = hash
		return empty(http.StatusNoContent), tx.PutCredentials(c.role, cred)
	})
	s.audit.decided(c, "password", c.role, c.role, rep.status == http.StatusNoContent)
	return rep
}

var errNoCredentials = errors.New("the role has no credentials")

// rotateKey gives a new API key to the caller, or to a role that the caller may
// update.
func (s *Server) rotateKey(c *call) reply {
	if refused := s.caller(c); refused != nil {
		return *refused
	}
	var refused *reply
	if c.query, refused = c.parameters(); refused != nil { // the role may be in the body
		return *refused
	}
	return s.change(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		role, cred, refused, err := s.keyHolder(c, tx, roles)
		if err != nil || refused != nil {
			return deref(refused), cmp.Or(err, errRefused)
		}
		cred.APIKey, cred.RotatedAt = load.NewAPIKey(), s.now()
		s.audit.decided(c, "rotate", c.role, role, true)
		return textReply(http.StatusOK, string(cred.APIKey)), tx.PutCredentials(role, cred)
	})
}

// keyRotated answers with the time of the last rotation of the key.
func (s *Server) keyRotated(c *call) reply {
	if refused := s.caller(c); refused != nil {
		return *refused
	}
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		role, cred, refused, err := s.keyHolder(c, tx, roles)
		if err != nil || refused != nil {
			return deref(refused), err
		}
		return jsonReply(http.StatusOK, struct {
			Role      string `json:"role"`
			Timestamp string `json:"timestamp"`
		}{role, cred.RotatedAt.UTC().Format("2006-01-02T15:04:05Z")}), nil
	})
}

// caller authenticates the caller by a token, or by a password or API key. The
// reply is nil if that succeeds.
func (s *Server) caller(c *call) (refused *reply) {
	no := empty(http.StatusUnauthorized)
	if _, ok := tokenOf(c.r); !ok {
		c.role, refused = s.basic(c)
		return refused
	}
	if no, ok := s.identify(c); !ok {
		return &no
	}
	cred, err := s.credentials(c, c.role)
	if err != nil {
		no = s.broken(c, err)
	}
	if err != nil || cred == nil { // the role was deleted after it got the token
		return &no
	}
	return nil
}

// subject returns the role whose credentials the request concerns: the role in the
// role parameter, or the caller. For the caller's own, a token is too weak.
func (c *call) subject(tx *store.Tx) (role string, refused *reply) {
	role = c.role
	if c.query.Has("role") {
		given := c.query.Get("role")
		if !strings.Contains(given, ":") {
			no := badArgument("Expected at least 2 tokens in " + given)
			return "", &no
		}
		if role = fullRole(c, given); !tx.Exists(role) {
			return "", noRole(c)
		}
	}
	if _, byToken := tokenOf(c.r); byToken && role == c.role {
		no := faultReply(http.StatusUnauthorized, fault{Code: "unauthorized", Message: "Credential strength is insufficient"})
		return "", &no
	}
	return role, nil
}

// noRole answers for a role that does not exist, or that the caller must not see.
func noRole(c *call) *reply {
	no := faultReply(http.StatusNotFound, fault{Code: "not_found",
		Message: "CONJ00123E Resource '" + c.query.Get("role") + "' requested by role '" + c.role + "' not found"})
	return &no
}

// keyHolder returns the role whose key the request concerns, with its credentials.
// For the key of another role, the caller needs a token and the privilege update on
// the role. The order of the checks is that of the genuine server.
func (s *Server) keyHolder(c *call, tx *store.Tx, roles store.Roles) (role string, cred *store.Credentials, refused *reply, err error) {
	if role, refused = c.subject(tx); refused != nil {
		return "", nil, refused, nil
	}
	if cred, err = tx.Credentials(role); err != nil || role == c.role && cred != nil {
		return role, cred, nil, err
	}
	o, err := tx.Object(role)
	if err != nil {
		return "", nil, nil, err
	}
	no := empty(http.StatusUnauthorized)
	allowed := func(privilege string) bool { return tx.Allowed(roles, privilege, role, o) }
	switch _, byToken := tokenOf(c.r); {
	case !byToken:
	case o == nil || !tx.Visible(roles, role, o):
		no = *noRole(c)
	case cred == nil && allowed("read") || !allowed("update"):
		no = forbidden(c)
	case cred == nil:
		no = faultReply(http.StatusMethodNotAllowed, fault{Code: "method_not_allowed",
			Message: "CONJ00126E Role '" + role + "' is not applicable for key rotation"})
	default:
		return role, cred, nil, nil
	}
	s.audit.decided(c, "rotate", c.role, role, false)
	return "", nil, &no, nil
}

// fullRole expands "user:bob" to a full name.
func fullRole(c *call, id string) string {
	if strings.Count(id, ":") < 2 {
		return c.account() + ":" + id
	}
	return id
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
	s.gate.recordAttempt(c, role, ok)
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
