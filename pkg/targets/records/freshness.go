package records

import (
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Polled notes that a poll has looked at every variable of the lane. What has
// changed is not fresh any more: its sync, which follows, says so.
func (l *Lane) Polled() {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.polled = time.Now()
}

// SincePoll returns how long ago the last poll was that looked at every
// variable; ever is false when there was none since the lane was empty, and it
// is counted from then.
func (l *Lane) SincePoll() (ago time.Duration, ever bool) {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l.polled.IsZero() {
		return time.Since(l.start), false
	}
	return time.Since(l.polled), true
}

// LastPoll is when the last poll was that looked at every variable; zero: there
// was none.
func (l *Lane) LastPoll() time.Time {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.polled
}

// Ages returns for each target how long ago it was proven to hold what Conjur
// has. What never was counts from the beginning.
func (l *Lane) Ages() map[targets.Key]time.Duration {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := time.Now()
	ages := make(map[targets.Key]time.Duration, len(l.keys))
	for key := range l.keys {
		status := &s.records[key].status
		if status.Proven.IsZero() {
			ages[key] = now.Sub(l.start)
		} else {
			ages[key] = now.Sub(status.proven(l.polled))
		}
	}
	return ages
}

// Renew forgets what is known of Conjur, as another client is to ask it: what
// was proven, what failed, and which variables there are. What is known of the
// destination stays.
func (l *Lane) Renew() {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.start, l.polled = time.Now(), time.Time{}
	l.listed, l.expands = nil, false
	for key := range l.keys {
		r := s.records[key]
		r.status.Proven, r.status.Err, r.status.Trouble = time.Time{}, nil, Trouble{}
		l.put(r, r.given, nil, nil)
	}
}

// Expiries returns those of the targets that have certificates.
func (l *Lane) Expiries() map[targets.Key]targets.Expiry {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	expiries := map[targets.Key]targets.Expiry{}
	for key := range l.keys {
		if e := s.records[key].status.Expires; !e.At.IsZero() {
			expiries[key] = e
		}
	}
	return expiries
}
