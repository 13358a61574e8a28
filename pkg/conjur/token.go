package conjur

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// lifeWithoutExpiry is how long the server honours a token without "exp".
	lifeWithoutExpiry = 8 * time.Minute
	// longestLife keeps an absurd "exp" from overflowing; servers allow 5 h.
	longestLife = 24 * time.Hour
	// renewalPause spaces attempts to renew a token that is still good.
	renewalPause = 10 * time.Second
)

// token is an access token. Its times come from our monotonic clock, since the
// server's clock need not agree with ours.
type token struct {
	header string    // the value of the Authorization header
	name   string    // as whom it was asked for, or else whom it names; empty: neither is known
	issued time.Time // when it was requested; the server knew us then, or later
	renew  time.Time // from here on a new one is fetched
	expire time.Time // from here on the server refuses it
}

// parseToken reads a token as the server sends it, at the time of receipt.
func parseToken(data []byte) (*token, error) {
	var t struct{ Protected, Payload, Signature string }
	if json.Unmarshal(data, &t) != nil || t.Protected == "" || t.Payload == "" || t.Signature == "" {
		return nil, errors.New("what came is no access token")
	}
	payload, err := decodeAnyBase64(t.Payload)
	if err != nil {
		return nil, errors.New("the access token's payload is not base64")
	}
	life, subject, err := readPayload(payload)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &token{
		name:   subject,
		header: `Token token="` + base64.StdEncoding.EncodeToString(data) + `"`,
		renew:  now.Add(life / 4 * 3),
		expire: now.Add(life),
	}, nil
}

func readPayload(payload []byte) (life time.Duration, subject string, err error) {
	var claims struct {
		Iat, Exp *float64
		Sub      string
	}
	if json.Unmarshal(payload, &claims) != nil {
		return 0, "", errors.New("the access token's payload is not a JSON object with a name and numeric times")
	}
	if claims.Iat == nil || claims.Exp == nil {
		return lifeWithoutExpiry, claims.Sub, nil
	}
	seconds := min(max(*claims.Exp-*claims.Iat, 0), longestLife.Seconds())
	return time.Duration(seconds * float64(time.Second)), claims.Sub, nil
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
	authenticate func(context.Context) (*token, error)
	log          *zap.Logger
	rest         rest // between attempts; it grows until a token is accepted
	doubts       rest // between doubts about the identity

	mu      sync.Mutex
	current *token
	name    string    // of the first token, for which values are delivered
	cause   error     // of the last failure
	failed  time.Time // when that was
	doubted bool      // no token was got since the identity was in doubt
	renewal *renewal  // the one under way
}

// renewal is one authentication that several requests may wait for.
type renewal struct {
	done  chan struct{}
	token *token
	err   error
}

// get gives a token that is not the refused one, which may be nil. The first
// caller that finds it due for renewal fetches a new one, the others wait.
func (s *tokens) get(ctx context.Context, refused *token) (*token, error) {
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
func (s *tokens) look(refused *token) (t *token, r *renewal, lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.current == refused {
		s.current = nil
	}
	resting := s.rest.on()
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
// the first token. Another is not the one whose values are delivered, whatever
// it may not see; empty if no token named anybody.
func (s *tokens) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

func (s *tokens) lead(ctx context.Context, r *renewal) (*token, error) {
	r.token, r.err = s.authenticate(ctx)
	t, err := s.ended(r)
	if err == nil && r.err != nil && !isContextError(r.err) {
		s.log.Warn("The access token cannot be renewed; the one before still serves",
			zap.Duration("for", time.Until(t.expire).Round(time.Second)), zap.Error(r.err))
	}
	return t, err
}

// ended takes the outcome of a renewal and returns the token that serves then.
func (s *tokens) ended(r *renewal) (*token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.done)
	s.renewal = nil
	if r.err == nil {
		s.current, s.cause, s.doubted = r.token, nil, false
		s.name = cmp.Or(s.name, r.token.name)
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
	if s.doubted {
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
	s.rest.begin(least)
}

// accepted is called when the server took a token for good. An old one says
// nothing about how the next attempt to get one will end.
func (s *tokens) accepted(t *token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.issued.After(s.failed) {
		s.rest.end()
	}
}

// refused is called when the server refused a token that it had just given out.
func (s *tokens) refused(t *token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == t {
		s.current = nil
		s.restLocked(err, 0)
	}
}

// doubt is called when the server refuses what it grants every living identity.
// A deleted one keeps its token until it ends, but gets no new one: so that
// decides. It returns nil when the identity lives, or was found to a moment ago,
// and something else is the reason.
func (s *tokens) doubt(ctx context.Context, t *token) error {
	s.mu.Lock()
	if s.current == t {
		if s.doubts.on() {
			s.mu.Unlock()
			return nil
		}
		s.doubts.begin(0)
		s.current, s.doubted = nil, true
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

// lookNewer gives the renewal to wait for, or to lead; none when the token is
// new enough, or when it is too early for another attempt.
func (s *tokens) lookNewer(moment time.Time) (r *renewal, lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != nil && s.current.issued.After(moment):
		return nil, false, nil
	case s.renewal != nil:
		return s.renewal, false, nil
	case s.rest.on():
		return nil, false, s.cause
	}
	s.renewal = &renewal{done: make(chan struct{})}
	return s.renewal, true, nil
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
