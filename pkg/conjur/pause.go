package conjur

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// maxPause bounds the pause from Retry-After.
	maxPause = 5 * time.Minute
	// pauseSpread is the maximum random extension of a pause, as a share of it. A
	// server requests the same pause from a whole fleet.
	pauseSpread = 0.5
)

// pauser blocks requests during a pause.
type pauser struct {
	mu     sync.Mutex
	status int
	until  time.Time
}

func (p *pauser) checkPause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return &PauseError{Status: p.status, Until: p.until}
	}
	return nil
}

// pause applies a Retry-After header: seconds, or a date (RFC 9110, 10.2.3). A 429 or 5xx
// without Retry-After causes no pause here; the queue and retry.Rest then wait.
func (p *pauser) pause(status int, retryAfter string) {
	d := time.Duration(0)
	if n, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(retryAfter); err == nil {
		d = time.Until(at)
	}
	d = min(d, maxPause)
	until := time.Now().Add(d + time.Duration(pauseSpread*rand.Float64()*float64(d)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) {
		p.status, p.until = status, until
	}
}

// PauseError means that the server requested a pause (Retry-After) that has not
// ended.
type PauseError struct {
	Status int
	Until  time.Time
}

func (e *PauseError) Error() string {
	return fmt.Sprintf("no request sent: the server answered %d and wants none before %s",
		e.Status, e.Until.UTC().Format(time.RFC3339))
}
