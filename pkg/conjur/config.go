package conjur

import (
	"cmp"
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
	// Authenticator makes the credential that is exchanged for access tokens.
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

	// RateLimit is requests a second; default 50. Twice as many may go out at
	// once.
	RateLimit rate.Limit

	// MayWrite, if set, returns why nothing must be changed on the server now. It
	// is asked right before each such request.
	MayWrite func() error

	// Version is the program's, for User-Agent and telemetry.
	Version string
	// Observer, if set, hears of each request.
	Observer Observer
	// Logger may be nil.
	Logger *zap.Logger
	// Dial, if set, replaces the dialer: for tests, and for networks of a
	// special kind.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Observer hears of requests.
type Observer interface {
	// Asked is called after each request. It must not block.
	Asked(Exchange)
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
	for name, n := range map[string]float64{
		"HTTP timeout": float64(c.HTTPTimeout), "token timeout": float64(c.TokenTimeout), "rate limit": float64(c.RateLimit),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

// notInAccount reports whether a character would break a resource id or a path.
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
	c.HTTPTimeout = cmp.Or(c.HTTPTimeout, time.Minute)
	c.RateLimit = cmp.Or(c.RateLimit, 50)
	c.Version = cmp.Or(c.Version, "0.0.0")
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return c
}
