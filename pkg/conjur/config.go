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

// Config is the configuration of a Client. Zero fields have defaults.
type Config struct {
	// ApplianceURL is the server's URL, without a trailing API path.
	ApplianceURL string
	Account      string
	// Authenticator produces the credential to exchange for access tokens.
	Authenticator Authenticator

	// TokenTimeout bounds the use of an access token. Zero means three quarters of
	// its lifetime.
	TokenTimeout time.Duration

	// CA holds trusted certificate authorities for the server, as PEM text. It
	// overrides CAFile. If both are empty, the system's authorities apply.
	CA string
	// CAFile is the path of a file with such text. A changed file applies from the
	// next request on. A broken file is reported and ignored.
	CAFile string
	// HTTPTimeout bounds one request with its answer; default 60 s.
	HTTPTimeout time.Duration

	// RateLimit is the number of requests per second; default 50. The burst is
	// four times that number. If these do not suffice, polls may send half as many besides.
	RateLimit rate.Limit

	// MayWrite, if set, returns the reason why nothing may be changed on the server
	// now, or nil. It is called immediately before each write request.
	MayWrite func() error

	// Version is the program's version, for User-Agent and telemetry.
	Version string
	// Observer, if set, is called after each request.
	Observer Observer
	// Remarker, if set, receives the reason why the access token cannot be renewed.
	Remarker Remarker
	// Logger may be nil.
	Logger *zap.Logger
	// Dial, if set, replaces the dialer: for tests, and for special networks.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Remarker receives the reason why a subject works only in part; nil means that it works
// fully. The same reason may come again and again. It must not block.
type Remarker interface {
	Remark(subject string, err error)
}

// Observer observes requests.
type Observer interface {
	// Asked is called after each request. It must not block.
	Asked(Exchange)
}

// validate returns all faults of the configuration.
func (c *Config) validate() error {
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

// notInAccount reports whether a character is invalid in an account, because it
// would break a resource id or a path.
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
