package conjur

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/retry"
)

const (
	// lifeWithoutExpiry is the server's validity period for a token without "exp".
	lifeWithoutExpiry = 8 * time.Minute
	// longestLife prevents overflow from an absurd "exp". Servers permit at most 5
	// h.
	longestLife = 24 * time.Hour
	// renewalPause spaces attempts to renew a valid token.
	renewalPause = 10 * time.Second
)

// Token is an access token. Its times use the local monotonic clock, because the
// server's clock may differ.
type Token struct {
	header     string    // the value of the Authorization header
	name       string    // the requested identity, or else the token's; empty if unknown
	alternates bool      // name replaces the previous identity
	issued     time.Time // time of the request; the identity existed then or later
	renew      time.Time // when to fetch a new one
	expire     time.Time // when the server begins to refuse it
	// The server's clock at issue, and the local clock at receipt. Zero if the
	// token has no issue time.
	said, heard time.Time
	dated       time.Time // Date of the answer with it; zero if it had none
}

// Issued returns the time of the token's request. The identity existed then, or
// later.
func (t *Token) Issued() time.Time { return t.issued }

// parseToken parses a token from the server. It must be called at the time of
// receipt.
func parseToken(data []byte) (*Token, error) {
	var t struct{ Protected, Payload, Signature string }
	if json.Unmarshal(data, &t) != nil || t.Protected == "" || t.Payload == "" || t.Signature == "" {
		return nil, errors.New("the answer is not an access token")
	}
	payload, err := decodeAnyBase64(t.Payload)
	if err != nil {
		return nil, errors.New("the access token's payload is not base64")
	}
	life, subject, said, err := readPayload(payload)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &Token{
		name: subject, said: said, heard: now,
		header: `Token token="` + base64.StdEncoding.EncodeToString(data) + `"`,
		renew:  now.Add(life / 4 * 3),
		expire: now.Add(life),
	}, nil
}

func readPayload(payload []byte) (life time.Duration, subject string, said time.Time, err error) {
	var claims struct {
		Iat, Exp *float64
		Sub      string
	}
	if json.Unmarshal(payload, &claims) != nil {
		return 0, "", said, errors.New("the access token's payload is not a JSON object with a name and numeric times")
	}
	if claims.Iat == nil || claims.Exp == nil {
		return lifeWithoutExpiry, claims.Sub, said, nil
	}
	if *claims.Iat > 0 && *claims.Iat < 1<<37 { // limit to years that can be formatted
		said = time.Unix(int64(*claims.Iat), 0).UTC()
	}
	seconds := min(max(*claims.Exp-*claims.Iat, 0), longestLife.Seconds())
	return time.Duration(seconds * float64(time.Second)), claims.Sub, said, nil
}

// decodeAnyBase64 accepts the URL-safe form, which the server uses, and the
// standard form.
func decodeAnyBase64(s string) ([]byte, error) {
	b, err := base64.URLEncoding.DecodeString(s)
	if err != nil {
		b, err = base64.StdEncoding.DecodeString(s)
	}
	return b, err
}

// tokens manages the shared token of all requests. After a failed attempt to get
// one, the next attempt waits for a growing rest. Until then requests fail at once
// with the same cause.
type tokens struct {
	client *Client
	rest   retry.Rest // between attempts; it grows until a token is accepted
	proofs retry.Rest // between two proofs that the identity exists

	mu      sync.Mutex
	current *Token
	name    string    // of the first token, or of the last that alternates
	cause   error     // of the last failure
	failed  time.Time // time of the last failure
	denied  bool      // an existence proof is required: no token was issued since
	renewal *renewal  // the renewal in progress
}

// renewal is one authentication, for which several requests may wait.
type renewal struct {
	done  chan struct{}
	token *Token
	err   error
}

// Time returns the current time by the server's clock: its time at the issue of the
// current token, plus the time elapsed since. It may be late by the duration of a
// request plus a second. It is zero if the server's tokens have no issue time.
func (c *Client) Time(ctx context.Context) (time.Time, error) {
	t, err := c.tokens.get(ctx, nil)
	if err != nil || t.said.IsZero() {
		return time.Time{}, err
	}
	return t.said.Add(time.Since(t.heard)), nil
}

// get returns a token other than the refused one, which may be nil. The first
// caller that finds a renewal due performs it, and the others wait.
func (s *tokens) get(ctx context.Context, refused *Token) (*Token, error) {
	for {
		t, r, lead, err := s.tokenOrRenewal(refused)
		if t != nil || err != nil {
			return t, err
		}
		if lead {
			return s.lead(ctx, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.err == nil {
			return r.token, nil
		}
		if !isContextError(r.err) { // otherwise the leading caller gave up
			return nil, r.err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// tokenOrRenewal returns one of these: a token, a renewal to wait for, a renewal to lead,
// or the reason why it is too early.
func (s *tokens) tokenOrRenewal(refused *Token) (t *Token, r *renewal, lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.current == refused {
		s.current = nil
	}
	resting := s.rest.On()
	if t = s.current; t != nil {
		if now.Before(t.renew) || now.Before(t.expire) && (resting || s.renewal != nil) {
			return t, nil, false, nil
		}
	}
	if s.renewal != nil {
		return nil, s.renewal, false, nil
	}
	if resting {
		return nil, nil, false, s.cause
	}
	s.renewal = &renewal{done: make(chan struct{})}
	return nil, s.renewal, true, nil
}

// owner returns the expected name of this identity: from the first token, or from
// the last if logins alternate. Under another name, the identity's missing
// privileges prove nothing about the delivered values. The result is empty if no
// token named an identity.
func (s *tokens) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

func (s *tokens) lead(ctx context.Context, r *renewal) (*Token, error) {
	r.token, r.err = s.client.authenticate(ctx)
	t, err := s.ended(r)
	var pause *PauseError
	switch {
	case s.client.config.Remarker == nil, isContextError(r.err), errors.As(r.err, &pause): // nothing new
	case r.err == nil:
		s.client.config.Remarker.Remark("access token of "+t.name, nil)
	case err == nil:
		s.client.config.Remarker.Remark("access token of "+t.name, fmt.Errorf("it cannot be renewed; the current one is used until it expires: %w", r.err))
	}
	return t, err
}

// ended records the outcome of a renewal and returns the token to use.
func (s *tokens) ended(r *renewal) (*Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.done)
	s.renewal = nil
	if r.err == nil {
		s.current, s.cause, s.denied = r.token, nil, false
		if s.name == "" || r.token.alternates {
			s.name = r.token.name
		}
		return r.token, nil
	}
	old := s.current
	if old != nil && !time.Now().Before(old.expire) {
		old = nil
	}
	s.failedLocked(r, old != nil)
	if old != nil {
		return old, nil // the old token is still valid
	}
	return nil, r.err
}

// failedLocked begins a rest, unless nothing was tried because the caller gave up
// or the server had requested a pause.
func (s *tokens) failedLocked(r *renewal, serves bool) {
	var pause *PauseError
	if isContextError(r.err) || errors.As(r.err, &pause) {
		return
	}
	if s.denied {
		r.err = &IdentityError{r.err}
	}
	least := time.Duration(0)
	if serves {
		least = renewalPause
	}
	s.restLocked(r.err, least)
}

func (s *tokens) restLocked(cause error, least time.Duration) {
	s.cause, s.failed = cause, time.Now()
	s.rest.Begin(least)
}

// accepted is called after the server accepted a token. An old token's acceptance
// does not predict the outcome of the next attempt to get one.
func (s *tokens) accepted(t *Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.issued.After(s.failed) {
		s.rest.End()
	}
}

// refused is called after the server refused a token that it had just issued.
func (s *tokens) refused(t *Token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == t {
		s.current = nil
		s.restLocked(err, 0)
	}
}

// proveIdentity is called after the server refused a request that it permits for
// every existing identity. A deleted identity keeps its token until expiry, but
// gets no new one. Therefore a new token decides. proveIdentity returns nil if the
// identity exists, or existed a moment ago, so that another reason applies.
func (s *tokens) proveIdentity(ctx context.Context, t *Token) error {
	s.mu.Lock()
	if s.current == t {
		if s.proofs.On() {
			s.mu.Unlock()
			return nil
		}
		s.proofs.Begin(0)
		s.current, s.denied = nil, true
	}
	s.mu.Unlock()
	_, err := s.get(ctx, t)
	return err
}

// newer replaces the shared token with one that is requested after the moment. On
// an error the old token stays in use.
func (s *tokens) newer(ctx context.Context, moment time.Time) error {
	for {
		r, lead, err := s.lookNewer(moment)
		if r == nil {
			return err
		}
		if lead {
			if _, err := s.lead(ctx, r); err != nil {
				return err
			}
			return r.err
		}
		select {
		case <-r.done: // it may have begun before the moment
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookNewer returns the renewal to wait for, or to lead. It returns none if the
// token is new enough, or if it is too early for another attempt.
func (s *tokens) lookNewer(moment time.Time) (r *renewal, lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != nil && s.current.issued.After(moment):
		return nil, false, nil
	case s.renewal != nil:
		return s.renewal, false, nil
	case s.rest.On():
		return nil, false, s.cause
	}
	s.renewal = &renewal{done: make(chan struct{})}
	return s.renewal, true, nil
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
