// Package clouds stands in for the clouds whose keys Syncer rotates. It behaves as the
// references of the providers say. No test of this project has reached a real cloud.
package clouds

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Key is a key of a holder.
type Key struct {
	ID, Secret string
	Mark       string // of Azure: the display name; of Google Cloud: the origin
	Created    time.Time
	Active     bool
	Used       time.Time

	shown time.Time // from then on, everybody sees the change before
	was   string    // what others see until then: "absent", "active" or "inactive"
}

// Cloud holds the keys of one holder: a user, a service account or an application. Its
// fields are set before the first request.
type Cloud struct {
	*httptest.Server
	Limit int
	// Lag is how long a change takes to be visible to other requests.
	Lag time.Duration
	// Ahead is how far the cloud's clock is ahead.
	Ahead    time.Duration
	mu       sync.Mutex
	keys     []*Key
	ended    []string // the ids of deleted keys
	requests int
	throttle int
	denied   map[string]bool // by call
}

// start serves the cloud until the test ends, with what faults put before it.
func (c *Cloud) start(t testing.TB, serve http.HandlerFunc, before func(http.Handler) http.Handler) {
	t.Helper()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", c.Now().UTC().Format(http.TimeFormat))
		serve(w, r)
	})
	if before != nil {
		h = before(h)
	}
	c.Server = httptest.NewServer(h)
	c.denied = map[string]bool{}
	t.Cleanup(c.Close)
}

// Now returns the time of the cloud's clock.
func (c *Cloud) Now() time.Time { return time.Now().Add(c.Ahead) }

// Throttle refuses each request of that number with Retry-After: 1; 0: none.
func (c *Cloud) Throttle(each int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.throttle = each
}

// throttled reports whether this request is one too many.
func (c *Cloud) throttled(w http.ResponseWriter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if c.throttle == 0 || c.requests%c.throttle != 0 {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(1))
	return true
}

// Deny makes the cloud refuse a call, or accept it again.
func (c *Cloud) Deny(call string, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied[call] = denied
}

func (c *Cloud) denies(call string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.denied[call]
}

// Add adds a key as somebody else makes it.
func (c *Cloud) Add(id string, created time.Time) Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := &Key{ID: id, Secret: rand.Text(), Created: created, Active: true}
	c.keys = append(c.keys, key)
	return *key
}

// add makes a key; false if there is no room.
func (c *Cloud) add(key *Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= c.Limit {
		return false
	}
	key.Created, key.Active = c.Now().Truncate(time.Second), true
	key.was, key.shown = "absent", time.Now().Add(c.Lag)
	c.keys = append(c.keys, key)
	return true
}

// Change sets the status of a key; false if there is no such key.
func (c *Cloud) Change(id string, active bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.keys, func(k *Key) bool { return k.ID == id })
	if i < 0 {
		return false
	}
	if c.keys[i].Active != active {
		c.keys[i].Active, c.keys[i].shown, c.keys[i].was = active, time.Now().Add(c.Lag), map[bool]string{true: "inactive", false: "active"}[active]
	}
	return true
}

// Remove deletes a key; false if there is no such key.
func (c *Cloud) Remove(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.keys)
	c.keys = slices.DeleteFunc(c.keys, func(k *Key) bool { return k.ID == id })
	if len(c.keys) < before {
		c.ended = append(c.ended, id)
	}
	return len(c.keys) < before
}

// seen returns the keys as other requests see them now.
func (c *Cloud) seen() (keys []Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.keys {
		seen := *k
		if time.Now().Before(k.shown) {
			if k.was == "absent" {
				continue
			}
			seen.Active = k.was == "active"
		}
		keys = append(keys, seen)
	}
	return keys
}

// Keys returns the keys as they are.
func (c *Cloud) Keys() (keys []Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.keys {
		keys = append(keys, *k)
	}
	return keys
}

// Ended returns the ids of all keys that were deleted.
func (c *Cloud) Ended() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ended)
}

// use notes the use of a key; false if the key is not accepted.
func (c *Cloud) use(id string, good func(Key) bool) bool {
	for _, k := range c.seen() {
		if k.ID == id && k.Active && good(k) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if i := slices.IndexFunc(c.keys, func(k *Key) bool { return k.ID == id }); i >= 0 {
				c.keys[i].Used = c.Now()
			}
			return true
		}
	}
	return false
}
