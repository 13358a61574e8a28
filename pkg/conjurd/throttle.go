package conjurd

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	defaultFailedLogins = 10
	maxLoginWait        = time.Minute
	// throttleForget is how long a failure counts.
	throttleForget = 10 * time.Minute
	throttleSize   = 10_000
	throttleSweep  = time.Minute
)

// throttle delays the guessing of passwords. After several consecutive failures,
// each further attempt from the same address for the same login must wait. The wait
// doubles each time. Others are not delayed. API keys cannot be guessed, so a
// correct key never waits (decision 018).
type throttle struct {
	limit int // 0: none
	now   func() time.Time

	mu    sync.Mutex
	tries map[attempt]record
	swept time.Time
}

// attempt is a digest of an address and a role, because logins may be long.
type attempt [sha256.Size]byte

// attemptOf uses the address of the connection. Addresses in the request's headers
// may be forged.
func attemptOf(c *call, role string) attempt {
	return sha256.Sum256([]byte(remoteIP(c.r).String() + " " + role))
}

type record struct {
	failures int
	last     time.Time
}

func newThrottle(o Options) *throttle {
	t := &throttle{limit: o.MaxFailedLogins, now: o.Now, tries: map[attempt]record{}}
	switch {
	case t.limit < 0 || o.Strict:
		t.limit = 0
	case t.limit == 0:
		t.limit = defaultFailedLogins
	}
	return t
}

// wait returns how long the caller must wait before its next attempt.
func (t *throttle) wait(c *call, role string) time.Duration {
	if t.limit == 0 {
		return 0
	}
	t.mu.Lock()
	rec := t.tries[attemptOf(c, role)]
	t.mu.Unlock()
	over := rec.failures - t.limit
	if over < 0 {
		return 0
	}
	pause := min(time.Second<<min(over, 6), maxLoginWait)
	return max(0, rec.last.Add(pause).Sub(t.now()))
}

// recordAttempt counts a failure. A success with a password resets the count.
func (t *throttle) recordAttempt(c *call, role string, ok bool) {
	if t.limit == 0 {
		return
	}
	key := attemptOf(c, role)
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if ok {
		delete(t.tries, key)
		return
	}
	if len(t.tries) >= throttleSize {
		t.sweepLocked(now)
	}
	rec := t.tries[key]
	if now.Sub(rec.last) > throttleForget {
		rec.failures = 0
	}
	t.tries[key] = record{rec.failures + 1, now}
}

// sweepLocked makes room. At intervals it removes all old entries. If that is not
// enough, it removes any one.
func (t *throttle) sweepLocked(now time.Time) {
	if now.Sub(t.swept) >= throttleSweep {
		t.swept = now
		for key, rec := range t.tries {
			if now.Sub(rec.last) > throttleForget {
				delete(t.tries, key)
			}
		}
	}
	for key := range t.tries {
		if len(t.tries) >= throttleSize {
			delete(t.tries, key)
		}
		return
	}
}
