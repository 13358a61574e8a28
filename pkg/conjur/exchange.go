package conjur

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Kind is the purpose of a request.
type Kind string

// The kinds of requests.
const (
	KindAuthenticate Kind = "authenticate"
	KindLogin        Kind = "login"    // a request before an authentication
	KindBatch        Kind = "batch"    // many variables, all or nothing
	KindVariable     Kind = "variable" // one variable
	KindWhoami       Kind = "whoami"
	KindCheck        Kind = "check"      // does this identity have a privilege on the variable?
	KindResource     Kind = "resource"   // the variable's properties without its value
	KindList         Kind = "list"       // a page of the list of variables
	KindSet          Kind = "set"        // sets one variable
	KindSetAll       Kind = "set all"    // sets many, all or none
	KindRotateKey    Kind = "rotate key" // of another identity
	KindPolicy       Kind = "policy"     // loads a policy
)

// Exchange is one request with its answer, for metrics.
type Exchange struct {
	Kind     Kind
	Status   int // of the HTTP response; 0 if there was none
	Duration time.Duration
}

// reply is an answer whose body has been read.
type reply struct {
	kind    Kind
	subject string
	status  int
	header  http.Header
	body    []byte
	endless bool   // only the end of the connection marked the end of the body
	token   *Token // token of the request
	hint    string // see StatusError
}

func (r *reply) wipe() { clear(r.body) }

func (r *reply) statusError(detail string) *StatusError {
	e := &StatusError{Kind: r.kind, Subject: r.subject, Status: r.status, Detail: detail, hint: r.hint}
	if r.status != http.StatusOK {
		e.Code = messageCode(r.body)
	}
	return e
}

// ask sends a data request with the shared token. After a 401 it gets a new token
// and sends the request once more.
func (c *Client) ask(ctx context.Context, kind Kind, subject string, req *http.Request) (*reply, error) {
	var refused *Token
	for {
		t, err := c.tokens.get(ctx, refused)
		if err != nil {
			return nil, err
		}
		if c.config.MayWrite != nil && req.Method != http.MethodGet {
			if err := c.config.MayWrite(); err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind, subject, err)
			}
		}
		r, err := c.askWith(ctx, t, kind, subject, req.Clone(ctx))
		if err != nil || r.status != http.StatusUnauthorized {
			return r, err
		}
		if refused != nil {
			c.tokens.refused(t, r.statusError(""))
			return r, nil
		}
		refused = t
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// askWith sends a request with exactly this token.
func (c *Client) askWith(ctx context.Context, t *Token, kind Kind, subject string, req *http.Request) (*reply, error) {
	req.Header.Set("Authorization", t.header)
	r, err := c.exchange(ctx, kind, subject, req, nil)
	if err != nil {
		return nil, err
	}
	r.token = t
	if r.status != http.StatusUnauthorized {
		c.tokens.accepted(t)
	}
	if r.deniesIdentity() {
		if err := c.tokens.proveIdentity(ctx, t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// deniesIdentity reports whether the server refused a request that it permits for
// every existing identity. It never answers 403 to these kinds, whatever the
// identity's privileges.
func (r *reply) deniesIdentity() bool {
	asksAbout := r.kind == KindCheck || r.kind == KindResource || r.kind == KindList
	return asksAbout && r.status == http.StatusForbidden && len(r.body) == 0
}

// exchange sends a request and reads the answer. An error means that there is no
// answer. Its text contains nothing that was received. The certificate may be nil.
func (c *Client) exchange(ctx context.Context, kind Kind, subject string, req *http.Request, certificate *tls.Certificate) (*reply, error) {
	if err := c.pauser.checkPause(); err != nil {
		return nil, err
	}
	isLogin := kind == KindAuthenticate || kind == KindLogin // others wait for the token, too
	if err := c.pace.wait(ctx, isPoll(ctx) && !isLogin); err != nil {
		return nil, fmt.Errorf("%s: waiting for the rate limit: %w", about(kind, subject), err)
	}
	if err := c.pauser.checkPause(); err != nil { // a pause may have begun meanwhile
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.config.HTTPTimeout)
	defer cancel()
	c.identify(req)
	start := time.Now()
	r := &reply{kind: kind, subject: subject}
	err := c.receive(req.WithContext(limited), certificate, r)
	if err == nil && limited.Err() != nil {
		// The server answered because the caller left.
		r.wipe()
		err = limited.Err()
	}
	c.log.Debug("request", zap.String("kind", string(kind)), zap.Int("status", r.status),
		zap.Int("bytes", len(r.body)), zap.Duration("took", time.Since(start)))
	if c.config.Observer != nil {
		c.config.Observer.Asked(Exchange{Kind: kind, Status: r.status, Duration: time.Since(start)})
	}
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case limited.Err() != nil:
			err = advise(fmt.Errorf("%w %s", errTimeout, c.config.HTTPTimeout))
		default:
			err = advise(err)
		}
		return nil, fmt.Errorf("%s: %w", about(kind, subject), err)
	}
	r.hint = hint(req, c.base, r)
	if r.status == http.StatusTooManyRequests || r.status >= 500 {
		c.pauser.pause(r.status, r.header.Get("Retry-After"))
	}
	return r, nil
}

// errTimeout differs from context.DeadlineExceeded, so that a slow server does not
// look like a caller that gave up.
var errTimeout = errors.New("no complete answer within")

func (c *Client) receive(req *http.Request, certificate *tls.Certificate, r *reply) error {
	resp, err := c.transport.do(req, certificate)
	if err != nil {
		return plainError(err)
	}
	defer resp.Body.Close()
	r.status, r.header = resp.StatusCode, resp.Header
	limit := r.kind.longest(r.status)
	r.body, err = readBody(resp, limit)
	r.endless = resp.ContentLength < 0 && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%w of %d bytes (status %d)", errTooLarge, limit, r.status)
	case err != nil:
		return fmt.Errorf("status %d, but its body did not arrive: %w", r.status, plainError(err))
	case r.isCompressed():
		r.wipe()
		return errCompressed
	}
	return nil
}

var errCompressed = errors.New("the answer is compressed, which Syncer did not ask for; switch off compression for Conjur in the gateway")

// isCompressed reports whether a gateway compressed an answer of Conjur.
func (r *reply) isCompressed() bool {
	encoding := strings.ToLower(r.header.Get("Content-Encoding"))
	known := encoding == "" || encoding == "identity" || encoding == "base64"
	return !known && (r.status == http.StatusOK || r.status == http.StatusNotFound)
}
