// Package conjurd is a server that speaks Conjur's protocol, small enough to
// be embedded: one data file, no database server. It answers as the genuine
// server 1.24 does, and where that has a plain fault it does the right thing.
package conjurd

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Errors of Open, wrapped with the file's name.
var (
	ErrNoData    = store.ErrNoFile
	ErrWrongKey  = store.ErrWrongKey
	ErrForeign   = store.ErrForeign
	ErrTruncated = store.ErrTruncated
	ErrDamaged   = store.ErrDamaged
	ErrInUse     = store.ErrInUse
)

// Options of a server. The zero value but for Account is a server that keeps
// its data in a temporary file.
type Options struct {
	// Account is made, with its user admin, if the data does not have it yet.
	// Empty: the one that the data has, which is an error if it has not just
	// one.
	Account string
	// Data is the path of the data file. Empty: a temporary file, which Close
	// removes, under a key that nobody knows.
	Data string
	// DataKey seals the values in the data file; 32 bytes, or several keys one
	// after the other. See DataKey, the function. Not used without Data.
	DataKey []byte
	// Create makes the data file if there is none; otherwise that is an error.
	Create bool
	// Strict turns off what the genuine server does not have: atomic sets,
	// answers per variable, /health, the limit on failed logins, and the errors
	// of policies that say more than its own. The language of policies is the
	// same either way.
	Strict bool
	// UserTokenTTL and HostTokenTTL are the lives of access tokens, at most 5
	// hours; 0 means 8 minutes.
	UserTokenTTL, HostTokenTTL time.Duration
	// MaxValue is the longest value in bytes that can be set; 0 means 16 MiB.
	MaxValue int64
	// MaxFailedLogins is how many failures in a row from one address for one
	// login are answered at once, before each further one must wait; 0 means
	// 10, negative means no limit.
	MaxFailedLogins int
	// AllowPlainHTTP lets Serve work without TLS beyond loopback.
	AllowPlainHTTP bool
	// Audit gets a line of JSON for every decision: who, what, allowed or
	// not; never a value. Nil: no audit.
	Audit io.Writer
	// Kubernetes is where authn-k8s looks for Pods and brings certificates to.
	// Nil: nobody can log in by it.
	Kubernetes Pods
	// STS and GoogleIssuer are used in place of AWS's addresses and of Google's
	// issuer of identity tokens; for tests. Empty: the real ones.
	STS, GoogleIssuer string
	// TokenKey signs the access tokens of an account that is made, as for tests
	// with many servers; 2048 bits. Nil: a new key.
	TokenKey *rsa.PrivateKey
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	fault func(step string) error // for tests: see store.Options
}

const (
	defaultTTL      = 480 * time.Second
	maxTTL          = 5 * time.Hour
	defaultMaxValue = 16 << 20
)

// Server is a Conjur-compatible server on an open data file.
type Server struct {
	opt   Options
	store *store.Store
	temp  string // folder to remove at Close
	audit *auditLog
	gate  *throttle
	jwks  *keySets
	keys  map[string]accountKey // :: key id → key
	// loading has room for the one policy load at a time.
	loading chan struct{}
	// hashing has room for few comparisons of passwords at a time, which are
	// slow on purpose: strangers must not keep all processors busy.
	hashing chan struct{}
}

// accountKey signs the tokens of one account.
type accountKey struct {
	account string
	key     *slosilo.Key
}

// Open opens the data and makes the account if need be. It starts nothing:
// see Serve and Handler.
func Open(o Options) (_ *Server, err error) {
	s := &Server{opt: o, loading: make(chan struct{}, 1), hashing: make(chan struct{}, 2)}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	s.audit = newAuditLog(o.Audit)
	s.gate = newThrottle(s.opt)
	s.jwks = newKeySets(s.opt.Now)
	so := store.Options{Key: o.DataKey, Create: o.Create, Fault: o.fault}
	path := o.Data
	if path == "" {
		if s.temp, err = os.MkdirTemp("", "conjurd-"); err != nil {
			return nil, fmt.Errorf("folder for temporary data: %w", err)
		}
		path = filepath.Join(s.temp, "data")
		so = store.Options{Key: make([]byte, store.KeySize), Create: true, NoSync: true, Fault: o.fault}
		_, _ = rand.Read(so.Key) // never fails
	}
	if s.store, err = store.Open(path, so); err != nil {
		return nil, errors.Join(err, s.removeTemp())
	}
	if err = s.loadAccounts(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// loadAccounts makes the server's account if need be and reads all keys.
func (s *Server) loadAccounts() error {
	err := s.adoptAccount()
	if err != nil {
		return err
	}
	err = s.store.Update(func(tx *store.Tx) error { return load.Account(tx, s.opt.Account, s.opt.TokenKey, s.now()) })
	if err != nil {
		return err
	}
	s.keys = map[string]accountKey{}
	return s.store.View(func(tx *store.Tx) error {
		for _, account := range tx.Accounts() {
			der, err := tx.TokenKey(account)
			if err != nil {
				return err
			}
			key, err := slosilo.ParseKey(der)
			if err != nil {
				return fmt.Errorf("token key of account %s: %w", account, err)
			}
			s.keys[key.ID()] = accountKey{account, key}
		}
		return nil
	})
}

// adoptAccount makes the data's only account the server's, if none is named.
func (s *Server) adoptAccount() error {
	if s.opt.Account != "" {
		return nil
	}
	return s.store.View(func(tx *store.Tx) error {
		accounts := tx.Accounts()
		if len(accounts) != 1 {
			return fmt.Errorf("the data has %d accounts (%s): name the one to serve", len(accounts), strings.Join(accounts, ", "))
		}
		s.opt.Account = accounts[0]
		return nil
	})
}

// Close closes the data file. Serve must have returned.
func (s *Server) Close() error {
	return errors.Join(s.store.Close(), s.removeTemp())
}

func (s *Server) removeTemp() error {
	if s.temp == "" {
		return nil
	}
	return os.RemoveAll(s.temp)
}

// Account is the account that the server was opened with.
func (s *Server) Account() string { return s.opt.Account }

// Handler answers requests without Serve, such as under a server of one's
// own.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

// Backup writes the data as they are at this moment to a new file at path,
// while the server goes on. The copy opens with the same data key.
func (s *Server) Backup(path string) error { return s.store.Backup(path) }

// APIKey returns the API key of a login such as "admin" or "host/app/web".
func (s *Server) APIKey(ctx context.Context, login string) (string, error) {
	key := ""
	role := roleOf(s.opt.Account, login)
	err := s.view(ctx, func(tx *store.Tx) error {
		c, err := tx.Credentials(role)
		if err == nil && c == nil {
			err = errors.New(policy.Ref(role).NotFound())
		}
		if err == nil {
			key = string(c.APIKey)
		}
		return err
	})
	return key, err
}

// view is store.View for those who may have given up.
func (s *Server) view(ctx context.Context, f func(*store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.store.View(f)
}

func (s *Server) update(ctx context.Context, f func(*store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.store.Update(func(tx *store.Tx) error {
		tx.Until(ctx)
		return f(tx)
	})
}

func (s *Server) now() time.Time { return s.opt.Now() }

// ttl is the life of a new token of role.
func (s *Server) ttl(role policy.Ref) time.Duration {
	d := s.opt.UserTokenTTL
	if role.Kind() == "host" {
		d = s.opt.HostTokenTTL
	}
	if d == 0 {
		d = defaultTTL
	}
	return min(d, maxTTL)
}

func (s *Server) maxValue() int64 {
	if s.opt.MaxValue == 0 {
		return defaultMaxValue
	}
	return s.opt.MaxValue
}
