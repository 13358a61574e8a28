// Package conjurd is an embeddable server that speaks Conjur's protocol. It needs
// one data file and no database server. It answers as the genuine server 1.24 does,
// except that it corrects obvious defects.
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

	"k8s.io/utils/lru"

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

// ErrReplaced says that the data file was moved, removed or replaced while it was open.
// Then the server answers nothing from the data.
var ErrReplaced = store.ErrReplaced

// Options of a server. With only Account set, the server keeps its data in a
// temporary file.
type Options struct {
	// Account is created, with its user admin, if the data lacks it. Empty selects
	// the only account in the data. It is an error if there is none or more than
	// one.
	Account string
	// Data is the path of the data file. Empty selects a temporary file under a
	// random key. Close removes that file.
	Data string
	// DataKey seals the values in the data file. It is 32 bytes, or several such
	// keys concatenated: see the function DataKey. Without Data it is unused.
	DataKey []byte
	// Create permits the creation of the data file. If it is false, a missing file
	// is an error.
	Create bool
	// Strict disables everything that the genuine server lacks: atomic sets,
	// answers per variable, /health, the limit on failed logins, and more detailed
	// policy errors. The policy language is the same in both modes.
	Strict bool
	// UserTokenTTL and HostTokenTTL are the lifetimes of access tokens, at most 5
	// hours. 0 means 8 minutes.
	UserTokenTTL, HostTokenTTL time.Duration
	// MaxValue bounds a value's length in bytes. 0 means 16 MiB.
	MaxValue int64
	// MaxFailedLogins is the number of consecutive failures, per address and login,
	// that the server answers without a delay. Each further attempt must wait. 0
	// means 10, negative means no limit.
	MaxFailedLogins int
	// AllowPlainHTTP lets Serve listen without TLS beyond loopback.
	AllowPlainHTTP bool
	// Audit receives a line of JSON for every decision: who, what, allowed or not.
	// It never receives a value. Nil disables the audit log.
	Audit io.Writer
	// Refused is called for each refused log-in: who ("" if unknown), from which address,
	// and why. It never receives a credential. Nil ignores them.
	Refused func(login, from, why string)
	// Kubernetes gives authn-k8s access to Pods. Nil disables logins through
	// authn-k8s.
	Kubernetes Pods
	// STS and GoogleIssuer replace AWS's addresses and Google's issuer of identity
	// tokens, for tests. Empty selects the real ones.
	STS, GoogleIssuer string
	// TokenKey signs the access tokens of an account that Open creates, for tests
	// with many servers. It has 2048 bits. Nil generates a key.
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
	temp  string // folder that Close removes
	audit *auditLog
	gate  *throttle
	jwks  *keySets
	keys  map[string]accountKey // key id → key
	// verified holds tokens that were verified. The least recently used ones are forgotten.
	verified *lru.Cache // token in base64 → verified
	// loading has one slot, because one policy load runs at a time.
	loading chan struct{}
	// hashing has few slots for password comparisons, which are slow on purpose. It
	// prevents unauthenticated callers from occupying all processors.
	hashing chan struct{}
}

// accountKey signs the tokens of one account.
type accountKey struct {
	account string
	key     *slosilo.Key
}

// Open opens the data and creates the account if necessary. It starts nothing: see
// Serve and Handler.
func Open(o Options) (_ *Server, err error) {
	s := &Server{opt: o, loading: make(chan struct{}, 1), hashing: make(chan struct{}, 2), verified: lru.New(mostVerified)}
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

// loadAccounts creates the server's account if necessary and reads all keys.
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

// adoptAccount selects the data's only account if Options names none.
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

// Close closes the data file. Serve must have returned before.
func (s *Server) Close() error {
	return errors.Join(s.store.Close(), s.removeTemp())
}

// removeTemp removes temporary data. For an empty path, RemoveAll does nothing.
func (s *Server) removeTemp() error { return os.RemoveAll(s.temp) }

// Account returns the account that the server was opened with.
func (s *Server) Account() string { return s.opt.Account }

// Handler returns a handler that answers requests without Serve, for example in
// another server.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

// Backup writes the current data to a new file at path. The server stays available.
// The copy opens with the same data key.
func (s *Server) Backup(path string) error { return s.store.Backup(path) }

// InPlace returns ErrReplaced, wrapped with the file's name, if the open data file is
// no longer at its path.
func (s *Server) InPlace() error { return s.store.InPlace() }

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

// view is store.View, unless ctx has ended.
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

// ttl returns the lifetime of a new token for role.
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
