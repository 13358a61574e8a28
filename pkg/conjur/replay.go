package conjur

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// A cache on the way may ignore Cache-Control and repeat an answer. Such an answer says
// nothing about the present. Usually it shows (RFC 9111 and RFC 9211):
//   - a cache adds Age, a Warning, or another header that says hit or stale
//   - Conjur gives each answer another X-Request-Id
//   - Date is the time of the first answer

const (
	// mostRequestIDs bounds each of the two generations of request ids in memory.
	mostRequestIDs = 8192
	// clockSpread is how much the clocks of several proxies may differ.
	clockSpread = 5 * time.Second
)

// replays recognizes answers that a cache repeats.
type replays struct {
	seed maphash.Seed

	mu             sync.Mutex
	newer, earlier map[uint64]bool // hashes of request ids
}

func newReplays() *replays {
	return &replays{seed: maphash.MakeSeed(), newer: map[uint64]bool{}}
}

// sign returns how an answer shows that a cache repeats it; "" if nothing shows. Call it
// once for each answer.
func (s *replays) sign(r *reply) string {
	switch {
	case r.header.Values("Age") != nil:
		return "it has an Age"
	case strings.HasPrefix(r.header.Get("Warning"), "11"):
		return "it has a Warning that it is stale"
	case saysHit(r.header):
		return "a header of a cache says so"
	case s.knows(r.header.Get("X-Request-Id")):
		return "its X-Request-Id is that of an earlier answer"
	case r.token != nil && isBefore(r.header, r.token.dated):
		return "its Date is earlier than its access token"
	}
	return ""
}

var hit = lazyregexp.New(`(?i)\b(hit|stale|updating)\b`)

func saysHit(header http.Header) bool {
	for name, values := range header {
		if strings.Contains(name, "Cache") && name != "Cache-Control" && hit().MatchString(strings.Join(values, ",")) {
			return true
		}
	}
	return false
}

// knows reports whether an earlier answer had the id, and records it.
func (s *replays) knows(id string) bool {
	if id == "" {
		return false
	}
	sum := maphash.String(s.seed, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer[sum] || s.earlier[sum] {
		return true
	}
	if len(s.newer) == mostRequestIDs {
		s.newer, s.earlier = map[uint64]bool{}, s.newer
	}
	s.newer[sum] = true
	return false
}

// dateOf returns the Date of an answer; zero if it has none.
func dateOf(header http.Header) time.Time {
	at, _ := http.ParseTime(header.Get("Date"))
	return at
}

func isBefore(header http.Header, moment time.Time) bool {
	at := dateOf(header)
	return !at.IsZero() && !moment.IsZero() && at.Before(moment.Add(-clockSpread))
}
