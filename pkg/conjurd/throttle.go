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

// throttle slows down guessing of passwords. After a number of failures in a
// row, each further attempt of that address for that login must wait, twice as
// long each time; others are not held up by it. Nobody can guess an API key,
// so whoever has the right one never waits (decision 018).
type throttle struct {
	limit int // 0: none
	now   func() time.Time

	mu    sync.Mutex
	tries map[attempt]record
	swept time.Time
}

// attempt is a digest of an address and a role: logins may be long.
type attempt [sha256.Size]byte

// attemptOf counts by who is connected. What the request says of its own way
// here may be made up.
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

// wait returns how long the caller must still wait before it may try again.
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
	pause := maxLoginWait
	if over < 6 {
		pause = min(time.Second<<over, maxLoginWait)
	}
	return max(0, rec.last.Add(pause).Sub(t.now()))
}

// note counts a failure, or forgets them after a success with a password.
func (t *throttle) note(c *call, role string, ok bool) {
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

// sweepLocked makes room: now and then all that is old goes, and otherwise
// any one.
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
