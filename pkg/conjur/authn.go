package conjur

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Authenticator makes the credential that the server exchanges for an access
// token. Package authn has those that there are.
type Authenticator interface {
	// Credential is called at every authentication, and never twice at once. It
	// reads its source afresh, or knows for how long what it read is good. What
	// has to be asked of the server before goes through send.
	Credential(ctx context.Context, send Send) (Credential, error)
}

// Send sends a request without a token to the server, as the client sends all
// of its own: with the same trust and bounds. The error is nil when the server
// answered 2xx, and a *StatusError when it answered something else.
type Send func(ctx context.Context, req *http.Request) error

// Credential is one authentication request:
// POST {URL}/{account}[/{Login}]/authenticate.
type Credential struct {
	// URL is that of the authenticator, as in https://host/authn-jwt/service.
	// Empty means the plain authenticator "authn" of the server.
	URL         string
	Login       string // as it is, not escaped; empty: the server finds out
	Turns       bool   // Login is who the identity is from now on, whoever it was before
	ContentType string
	Body        secret.Value // wiped by the client
	// Certificate, if set, is shown to the server in the TLS handshake,
	// whichever authorities the server names there.
	Certificate *tls.Certificate
	// Refused, if set, is called when the server answered 401. It reports
	// whether another credential is to be tried at once.
	Refused func() bool
}

// authenticate exchanges a credential for a token. A refused one is replaced
// once, if its authenticator can make another.
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

// authenticateOnce returns what is to be called when the credential was refused
// with 401; nil when it was not.
func (c *Client) authenticateOnce(ctx context.Context) (t *Token, refused func() bool, err error) {
	if err := c.gate.check(); err != nil {
		return nil, nil, err // before a credential is fetched for nothing
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
	r, err := c.exchange(ctx, KindAuthenticate, cred.Login, req, cred.Certificate)
	if err != nil {
		return nil, nil, err
	}
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
	t.issued, t.name, t.turns = requested, cmp.Or(cred.Login, t.name), cred.Turns
	if limit := time.Now().Add(c.config.TokenTimeout); c.config.TokenTimeout > 0 && limit.Before(t.renew) {
		t.renew = limit
	}
	return t, nil, nil
}

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
