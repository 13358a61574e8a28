package records

import (
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Begin returns a target for a worker to sync, and marks it as held. The worker ends with
// Settle. Begin returns false if the target is not in the lane, or another lane's worker
// still holds it.
func (l *Lane) Begin(key targets.Key) (Record, bool) {
	s := l.wholeSet()
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
	held := s.copy(r)
	held.Seen = s.seen[key]
	s.forgetBeforeFirstSync(key)
	return held, true
}

// Settle stores the status from a worker and returns the resulting status. It also
// returns the target if it must be synced again. This happens if others changed the
// destination meanwhile, the target moved to another lane, or it was replaced. If the
// target was replaced, Settle ignores the worker's status.
func (l *Lane) Settle(done Record) (after Status, again []Change) {
	s, key := l.wholeSet(), done.Spec.Key
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
	r.status.derive(before, l.polled, time.Now())
	s.show(r, before.Sets)
	if r.status.Version != "" {
		s.forgetBeforeFirstSync(key) // the watch showed the sync's own write
	}
	if r.asks != done.asks {
		r.status.Asked = true
	}
	if r.lane != l || held.observed != "" && held.observed != r.status.Version {
		again = append(again, Change{Key: key, Lane: r.lane.name})
	}
	return r.status, again
}

// derive sets the other fields from Err.
func (s *Status) derive(before Status, polled, now time.Time) {
	if s.Err == nil {
		s.Proven = now
	} else if !before.Proven.IsZero() {
		s.Proven = before.proven(polled) // polls prove nothing from now on
	}
	if !errors.Is(s.Err, context.Canceled) { // otherwise the process is stopping
		s.Trouble, _ = before.Trouble.After(s.Err, now)
	}
}

// proven is the time of the last proof that the target equals Conjur, from a sync or from
// a poll without changes.
func (s *Status) proven(polled time.Time) time.Time {
	if s.Err == nil && polled.After(s.Proven) {
		return polled
	}
	return s.Proven
}

// Observe records the state of a target's destination. It reports whether others changed
// it: the state differs from the last read or write. While a worker holds the target,
// this is unknown; Settle finds out.
func (s *Set) Observe(key targets.Key, version string) (drifted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.busy[key]; held != nil {
		held.observed = version
		return false
	}
	r := s.records[key]
	return r != nil && r.status.Version != version
}

// RecordBeforeFirstSync records what the destination of a target held before its first
// sync, as look returns it. Begin passes it on once. It calls look only if no sync has
// read or written the destination.
func (s *Set) RecordBeforeFirstSync(key targets.Key, look func() any) {
	s.mu.RLock()
	r := s.records[key]
	known := r != nil && r.status.Version != ""
	s.mu.RUnlock()
	var seen any
	if !known {
		seen = look()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetBeforeFirstSync(key)
	if seen == nil {
		return
	}
	if s.seen == nil {
		s.seen = map[targets.Key]any{}
	}
	s.seen[key] = seen
}

// forgetBeforeFirstSync deletes the sighting of a target. With the last one, it frees the
// map, which was as large as the first list. The caller holds the lock.
func (s *Set) forgetBeforeFirstSync(key targets.Key) {
	if delete(s.seen, key); len(s.seen) == 0 {
		s.seen = nil
	}
}

// Ask records that a caller wants deleted targets restored.
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

// Ask calls Set.Ask.
func (l *Lane) Ask(keys ...targets.Key) { l.wholeSet().Ask(keys...) }
