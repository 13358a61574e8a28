package conjur

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Authenticator produces the credential that the server exchanges for an access
// token. Package authn implements the authenticators.
type Authenticator interface {
	// Credential is called at every authentication, and never concurrently. It
	// reads its source again, or knows how long its last result is valid. It uses
	// send for requests that must precede the authentication.
	Credential(ctx context.Context, send Send) (Credential, error)
}

// Send sends a request without a token to the server, with the same trust and
// limits as the client's requests. The error is nil for a 2xx answer, and a
// *StatusError for any other answer.
type Send func(ctx context.Context, req *http.Request) error

// Credential is one authentication request:
// POST {URL}/{account}[/{Login}]/authenticate.
type Credential struct {
	// URL is the URL of the authenticator, as in https://host/authn-jwt/service.
	// Empty selects the server's default authenticator "authn".
	URL         string
	Login       string // not escaped; empty if the server determines it
	Alternates  bool   // Login replaces the previous identity from now on
	ContentType string
	Body        secret.Value // the client wipes it
	// Certificate, if set, is presented in the TLS handshake, regardless of the
	// authorities that the server names.
	Certificate *tls.Certificate
	// Refused, if set, is called after a 401. It reports whether to try another
	// credential at once.
	Refused func() bool
}

// authenticate exchanges a credential for a token. If the credential is refused, it
// tries another one once, if the authenticator can produce it.
func (c *Client) authenticate(ctx context.Context) (*Token, error) {
	t, refused, err := c.authenticateOnce(ctx)
	if refused != nil && refused() {
		t, refused, err = c.authenticateOnce(ctx)
		if refused != nil {
			refused()
		}
	}
	return t, err
}

// authenticateOnce returns the function to call after a 401, or nil if there was no
// 401.
func (c *Client) authenticateOnce(ctx context.Context) (t *Token, refused func() bool, err error) {
	if err := c.pauser.checkPause(); err != nil {
		return nil, nil, err // fail before fetching a credential in vain
	}
	requested := time.Now()
	cred, err := c.config.Authenticator.Credential(ctx, c.send)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", KindAuthenticate, err)
	}
	body := &credentialBody{value: cred.Body}
	defer body.wipe()
	req, err := c.authenticateRequest(cred, body)
	if err != nil {
		return nil, nil, err
	}
	sent := time.Now()
	r, err := c.exchange(ctx, KindAuthenticate, cred.Login, req, cred.Certificate)
	if err != nil {
		return nil, nil, err
	}
	took := time.Since(sent)
	defer r.wipe()
	if r.status != http.StatusOK {
		if r.status == http.StatusUnauthorized {
			refused = cred.Refused
		}
		return nil, refused, r.statusError("")
	}
	if t, err = parseToken(r.body); err != nil {
		return nil, nil, r.statusError(err.Error())
	}
	t.dated = dateOf(r.header)
	t.issued, t.name, t.alternates = requested, cmp.Or(cred.Login, t.name), cred.Alternates
	if limit := time.Now().Add(c.config.TokenTimeout); c.config.TokenTimeout > 0 && limit.Before(t.renew) {
		t.renew = limit
	}
	c.spread(ctx, took)
	return t, nil, nil
}

// spread waits at random after a slow login, unless it is the first one. A server that
// stalled answers all waiting logins of a fleet within seconds, and each would be followed
// by a request at once.
func (c *Client) spread(ctx context.Context, took time.Duration) {
	if took < slowLogin || c.tokens.owner() == "" {
		return
	}
	sleep(ctx, time.Duration(rand.Float64()*float64(c.config.HTTPTimeout)))
}

// slowLogin is the duration of a login from which on the server counts as overloaded.
const slowLogin = 5 * time.Second

// send implements Send.
func (c *Client) send(ctx context.Context, req *http.Request) error {
	r, err := c.exchange(ctx, KindLogin, "", req, nil)
	if err != nil {
		return err
	}
	defer r.wipe()
	if r.status < 200 || r.status > 299 {
		return r.statusError("")
	}
	return nil
}

func (c *Client) authenticateRequest(cred Credential, body *credentialBody) (*http.Request, error) {
	target := cred.URL
	if target == "" {
		target = c.base + "/authn"
	}
	target = strings.TrimRight(target, "/") + "/" + c.config.Account
	if cred.Login != "" {
		target += "/" + url.PathEscape(cred.Login)
	}
	req, err := http.NewRequest(http.MethodPost, target+"/authenticate", nil)
	if err != nil {
		return nil, fmt.Errorf("%s: the authentication URL is malformed", KindAuthenticate)
	}
	if cred.ContentType != "" {
		req.Header.Set("Content-Type", cred.ContentType)
	}
	body.attach(req)
	return req, nil
}
