package conjur

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"
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
	life, err := lifetime(payload)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &token{
		header: `Token token="` + base64.StdEncoding.EncodeToString(data) + `"`,
		renew:  now.Add(life / 4 * 3),
		expire: now.Add(life),
	}, nil
}

func lifetime(payload []byte) (time.Duration, error) {
	var claims struct{ Iat, Exp *float64 }
	if json.Unmarshal(payload, &claims) != nil {
		return 0, errors.New("the access token's payload is not a JSON object with numeric times")
	}
	if claims.Iat == nil || claims.Exp == nil {
		return lifeWithoutExpiry, nil
	}
	seconds := min(max(*claims.Exp-*claims.Iat, 0), longestLife.Seconds())
	return time.Duration(seconds * float64(time.Second)), nil
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

// tokens holds the token that all requests share.
type tokens struct {
	authenticate func(context.Context) (*token, error)

	mu      sync.Mutex
	current *token
	retry   time.Time // after a failed renewal: not again before
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
		t, r, lead := s.look(refused)
		if t != nil {
			return t, nil
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

func (s *tokens) look(refused *token) (t *token, r *renewal, lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.current == refused {
		s.current = nil
	}
	if t = s.current; t != nil {
		if now.Before(t.renew) || now.Before(t.expire) && (now.Before(s.retry) || s.renewal != nil) {
			return t, nil, false
		}
	}
	if s.renewal != nil {
		return nil, s.renewal, false
	}
	s.renewal = &renewal{done: make(chan struct{})}
	return nil, s.renewal, true
}

func (s *tokens) lead(ctx context.Context, r *renewal) (*token, error) {
	r.token, r.err = s.authenticate(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.done)
	s.renewal = nil
	if r.err == nil {
		s.current = r.token
		return r.token, nil
	}
	s.retry = time.Now().Add(renewalPause)
	if t := s.current; t != nil && time.Now().Before(t.expire) {
		return t, nil // the old one still serves
	}
	return nil, r.err
}

var errRenewalPaused = errors.New("the last attempt to get a new access token failed a moment ago")

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
	case time.Now().Before(s.retry):
		return nil, false, errRenewalPaused
	}
	s.renewal = &renewal{done: make(chan struct{})}
	return s.renewal, true, nil
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
