package records

import (
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Begin returns a target for a worker that is to make it right, and marks it
// as held; the worker ends with Settle. It returns false when the target is
// not in the lane, or another lane's worker holds it still.
func (l *Lane) Begin(key targets.Key) (Record, bool) {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.keys[key] || s.busy[key] != nil {
		return Record{}, false
	}
	if s.busy == nil {
		s.busy = map[targets.Key]*work{}
	}
	r := s.records[key]
	s.busy[key] = &work{made: r.made}
	return s.copy(r), true
}

// Settle takes over the status that a worker leaves. It returns the status as
// it is then, and the target itself if it is to be synced again: somebody else
// has changed the destination meanwhile, or the target belongs to another lane
// or is another one by now. Of a target that is no longer what was begun
// nothing is taken over.
func (l *Lane) Settle(done Record) (after Status, again []Change) {
	s, key := l.all(), done.Spec.Key
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.busy[key]
	delete(s.busy, key)
	r := s.records[key]
	if r == nil || r.made != done.made {
		if r != nil {
			again = append(again, Change{Key: key, Lane: r.lane.name})
		}
		return done.Status, again
	}
	before := r.status
	r.status = done.Status
	r.status.settle(before, l.polled, time.Now())
	if r.asks != done.asks {
		r.status.Asked = true
	}
	if r.lane != l || held.heard != "" && held.heard != r.status.Version {
		again = append(again, Change{Key: key, Lane: r.lane.name})
	}
	return r.status, again
}

// settle works out what follows from Err.
func (s *Status) settle(before Status, polled, now time.Time) {
	if s.Err == nil {
		s.Proven = now
	} else if !before.Proven.IsZero() {
		s.Proven = before.proven(polled) // polls prove nothing from now on
	}
	if !errors.Is(s.Err, context.Canceled) { // else the process is stopping
		s.Trouble, _ = before.Trouble.Met(s.Err, now)
	}
}

// proven is when the target was last proven to hold what Conjur has, by a sync
// or by a poll that found nothing new.
func (s *Status) proven(polled time.Time) time.Time {
	if s.Err == nil && polled.After(s.Proven) {
		return polled
	}
	return s.Proven
}

// Observe notes that the destination of a target is in a state, and reports
// whether somebody else has left it so: it is not the one that was seen or left
// last. While a worker holds the target that is not known; Settle finds out.
func (s *Set) Observe(key targets.Key, version string) (drifted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.busy[key]; held != nil {
		held.heard = version
		return false
	}
	r := s.records[key]
	return r != nil && r.status.Version != version
}

// Ask notes that somebody wants targets back if they were deleted.
func (s *Set) Ask(keys ...targets.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if r := s.records[key]; r != nil {
			r.asks++
			r.status.Asked = true
		}
	}
}

// Ask is that of the Set.
func (l *Lane) Ask(keys ...targets.Key) { l.all().Ask(keys...) }
