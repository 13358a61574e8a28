package conjur

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Config is all that a Client needs to know. Zero fields take their defaults.
type Config struct {
	// ApplianceURL is the server's URL, without a trailing path of its API.
	ApplianceURL string
	Account      string
	// Authenticator gives the credential that is exchanged for access tokens.
	Authenticator Authenticator

	// TokenTimeout is how long an access token is used before a new one is
	// asked for, at most; zero: three quarters of its life.
	TokenTimeout time.Duration

	// CA is the certificates, as PEM text, that may sign the server's. It wins
	// over CAFile. With neither, the system's are used.
	CA string
	// CAFile is the path of a file with such text. A changed file is used
	// from the next request on; a broken one is reported and not used.
	CAFile string
	// HTTPTimeout is for one request with its answer; default 60 s.
	HTTPTimeout time.Duration

	// Confirmations is how often a variable must be proven gone, in separate
	// calls, before its Verdict is Gone; default 2. The last of several must
	// be made with an access token that was requested after the first.
	Confirmations int
	// ConfirmAfter is the time that must lie between two such proofs; zero:
	// any later call may confirm.
	ConfirmAfter time.Duration
	// Grace is the least time from the first such proof to the one by which
	// its Verdict becomes Gone; zero: as ConfirmAfter and the caller's own
	// pace give it.
	Grace time.Duration
	// Steady is how long a value must be answered, without another between, that
	// the variable had a while ago, no longer than this, before another: one of
	// several servers behind an address may lag behind. Zero: it is believed at
	// once.
	Steady time.Duration
	// Brake holds back what the proofs say when most variables go at once.
	Brake Brake

	// MaxRequestLine is the longest request line in bytes; default 8000. It is
	// halved when the server, or something before it, calls a line too long.
	MaxRequestLine int
	// RequestBudget is how many requests one Changed, or one merged Fetch, may
	// spend on finding out what is wrong with refused batches and on variables
	// that are gone; default 32. Half of the RateLimit is the most that all
	// budgets together may use.
	RequestBudget int
	// BatchMaxIDs is for servers that answer per variable; default 250.
	BatchMaxIDs int
	// MaxBody is the longest answer in bytes that is read; default 64 MiB.
	MaxBody int64
	// RateLimit is requests a second; default 50.
	RateLimit rate.Limit
	// RateBurst is how many requests may go out at once; default 100.
	RateBurst int

	// Version is the program's, for User-Agent and telemetry.
	Version string
	// Observe, if set, is called after each request. It must not block.
	Observe func(Exchange)
	// Held, if set, is called when a hold by the Brake begins and ends, in the
	// course of a Fetch or Changed. It must not block.
	Held func(HoldEvent)
	// Logger may be nil.
	Logger *zap.Logger
	// Dial, if set, replaces the dialer: for tests, and for networks of a
	// special kind.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// check finds everything that is wrong with the configuration.
func (c *Config) check() error {
	var errs []error
	if err := checkURL(c.ApplianceURL); err != nil {
		errs = append(errs, fmt.Errorf("appliance URL: %w", err))
	}
	if c.Account == "" {
		errs = append(errs, errors.New("account is missing"))
	} else if strings.ContainsFunc(c.Account, notInAccount) {
		errs = append(errs, fmt.Errorf("account %q has a character that no account can have", c.Account))
	}
	if c.Authenticator == nil {
		errs = append(errs, errors.New("authenticator is missing"))
	}
	for name, n := range map[string]int64{
		"HTTP timeout": int64(c.HTTPTimeout), "token timeout": int64(c.TokenTimeout), "number of confirmations": int64(c.Confirmations),
		"time between confirmations": int64(c.ConfirmAfter), "grace": int64(c.Grace), "steady time": int64(c.Steady),
		"hold of the brake": int64(c.Brake.Hold), "request line limit": int64(c.MaxRequestLine),
		"request budget": int64(c.RequestBudget), "batch size": int64(c.BatchMaxIDs), "body limit": c.MaxBody,
		"rate limit": int64(c.RateLimit), "rate burst": int64(c.RateBurst),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	if !(c.Brake.Share >= 0) { // nor is it a number, maybe
		errs = append(errs, errors.New("share of the brake must not be negative"))
	}
	return errors.Join(errs...)
}

// notInAccount tells the characters that would break a resource id or a path.
func notInAccount(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(":/?#%,+\\", r) }

func checkURL(s string) error {
	if s == "" {
		return errors.New("is missing")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q does not start with https://", s)
	case u.Host == "":
		return fmt.Errorf("%q has no host", s)
	case u.User != nil:
		return errors.New("must not contain a user or password")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q must not have a query or fragment", s)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.HTTPTimeout = orDefault(c.HTTPTimeout, time.Minute)
	c.Confirmations = orDefault(c.Confirmations, 2)
	c.Brake = c.Brake.withDefaults()
	c.MaxRequestLine = orDefault(c.MaxRequestLine, 8000)
	c.RequestBudget = orDefault(c.RequestBudget, 32)
	c.BatchMaxIDs = min(orDefault(c.BatchMaxIDs, 250), 250)
	c.MaxBody = orDefault(c.MaxBody, 64<<20)
	c.RateLimit = orDefault(c.RateLimit, 50)
	c.RateBurst = orDefault(c.RateBurst, 100)
	c.Version = orDefault(c.Version, "0.0.0")
	return c
}

func (c Config) rules() rules {
	return rules{confirmations: c.Confirmations, spacing: c.ConfirmAfter, grace: c.Grace, brake: c.Brake, steady: c.Steady}
}

func orDefault[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}
