package conjur

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/retry"
)

const (
	// lifeWithoutExpiry is how long the server honours a token without "exp".
	lifeWithoutExpiry = 8 * time.Minute
	// longestLife keeps an absurd "exp" from overflowing; servers allow 5 h.
	longestLife = 24 * time.Hour
	// renewalPause spaces attempts to renew a token that is still good.
	renewalPause = 10 * time.Second
)

// Token is an access token. Its times come from our monotonic clock, since the
// server's clock need not agree with ours.
type Token struct {
	header string    // the value of the Authorization header
	name   string    // as whom it was asked for, or else whom it names; empty: neither is known
	turns  bool      // the name takes the place of the one before
	issued time.Time // when it was requested; the server knew us then, or later
	renew  time.Time // from here on a new one is fetched
	expire time.Time // from here on the server refuses it
	// The server's clock when it made the token, and ours when it came; zero if
	// it does not say.
	said, heard time.Time
}

// Issued returns when the token was requested. The server knew the identity then,
// or later.
func (t *Token) Issued() time.Time { return t.issued }

// parseToken reads a token as the server sends it, at the time of receipt.
func parseToken(data []byte) (*Token, error) {
	var t struct{ Protected, Payload, Signature string }
	if json.Unmarshal(data, &t) != nil || t.Protected == "" || t.Payload == "" || t.Signature == "" {
		return nil, errors.New("what came is no access token")
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
	if *claims.Iat > 0 && *claims.Iat < 1<<37 { // a year that can be written
		said = time.Unix(int64(*claims.Iat), 0).UTC()
	}
	seconds := min(max(*claims.Exp-*claims.Iat, 0), longestLife.Seconds())
	return time.Duration(seconds * float64(time.Second)), claims.Sub, said, nil
}

// decodeAnyBase64 takes the URL-safe form, which the server uses, as well as
// the standard one.
func decodeAnyBase64(s string) ([]byte, error) {
	b, err := base64.URLEncoding.DecodeString(s)
	if err != nil {
		b, err = base64.StdEncoding.DecodeString(s)
	}
	return b, err
}

// tokens holds the token that all requests share. After an attempt to get one
// that failed, whatever the reason, the next comes after a growing rest; until
// then requests fail for the same reason without being sent.
type tokens struct {
	client *Client
	log    *zap.Logger
	rest   retry.Rest // between attempts; it grows until a token is accepted
	proofs retry.Rest // between two times that the identity had to prove that it lives

	mu      sync.Mutex
	current *Token
	name    string    // of the first token, or of the last that takes turns: for whom values are delivered
	cause   error     // of the last failure
	failed  time.Time // when that was
	denied  bool      // the identity is to prove that it lives: no token was got since
	renewal *renewal  // the one under way
}

// renewal is one authentication that several requests may wait for.
type renewal struct {
	done  chan struct{}
	token *Token
	err   error
}

// Time returns the time by the server's clock, from when it made the token in
// use, and ours since then. It may be late by the time that a request takes, and
// a second. It is zero if the server's tokens do not have it.
func (c *Client) Time(ctx context.Context) (time.Time, error) {
	t, err := c.tokens.get(ctx, nil)
	if err != nil || t.said.IsZero() {
		return time.Time{}, err
	}
	return t.said.Add(time.Since(t.heard)), nil
}

// get returns a token that is not the refused one, which may be nil. The first
// caller that finds it due for renewal fetches a new one, the others wait.
func (s *tokens) get(ctx context.Context, refused *Token) (*Token, error) {
	for {
		t, r, lead, err := s.look(refused)
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
		if !isContextError(r.err) { // else it was the leader who gave up
			return nil, r.err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// look returns a token, or the renewal to wait for or to lead, or why it is too
// early for one.
func (s *tokens) look(refused *Token) (t *Token, r *renewal, lead bool, err error) {
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

// owner returns the name by which the server is to know this identity: that of
// the first token, or of the last where logins take turns. Another is not the one
// whose values are delivered, whatever it may not see; empty if no token named
// anybody.
func (s *tokens) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

func (s *tokens) lead(ctx context.Context, r *renewal) (*Token, error) {
	r.token, r.err = s.client.authenticate(ctx)
	t, err := s.ended(r)
	if err == nil && r.err != nil && !isContextError(r.err) {
		s.log.Warn("The access token cannot be renewed; the one before still serves",
			zap.Duration("for", time.Until(t.expire).Round(time.Second)), zap.Error(r.err))
	}
	return t, err
}

// ended takes the outcome of a renewal and returns the token that serves then.
func (s *tokens) ended(r *renewal) (*Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.done)
	s.renewal = nil
	if r.err == nil {
		s.current, s.cause, s.denied = r.token, nil, false
		if s.name == "" || r.token.turns {
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
		return old, nil // it still serves
	}
	return nil, r.err
}

// failedLocked begins a rest, unless nothing was tried: the caller gave up, or
// the server had asked for a pause.
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

// accepted is called when the server took a token for good. An old one says
// nothing about how the next attempt to get one will end.
func (s *tokens) accepted(t *Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.issued.After(s.failed) {
		s.rest.End()
	}
}

// refused is called when the server refused a token that it had just given out.
func (s *tokens) refused(t *Token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == t {
		s.current = nil
		s.restLocked(err, 0)
	}
}

// proveIdentity is called when the server refuses what it grants every living
// identity. A deleted one keeps its token until it ends, but gets no new one: so
// that decides. It returns nil when the identity lives, or was found to a moment ago,
// and something else is the reason.
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

// newer makes the shared token one that was requested after the moment. The
// one before stays in use if that fails.
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

// lookNewer returns the renewal to wait for, or to lead; none when the token is
// new enough, or when it is too early for another attempt.
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
