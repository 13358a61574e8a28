package records

import (
	"cmp"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Polled records that a poll has read every variable of the lane. A changed variable is
// no longer fresh; the sync that follows records this.
func (l *Lane) Polled() {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.polled = time.Now()
}

// SincePoll returns the time since the last poll of every variable. ever is false if
// there was none since the lane was empty. Then the time counts from that moment.
func (l *Lane) SincePoll() (ago time.Duration, ever bool) {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l.polled.IsZero() {
		return time.Since(l.start), false
	}
	return time.Since(l.polled), true
}

// LastPoll is the time of the last poll of every variable; zero means none.
func (l *Lane) LastPoll() time.Time {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.polled
}

// Ages returns for each target the time since the last proof that it equals Conjur.
// Without a proof, the time counts from the start.
func (l *Lane) Ages() map[targets.Key]time.Duration {
	s := l.wholeSet()
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

// Unproven lists the targets that no sync has proven yet, without and with an error. It
// also returns the number of all targets. Probes call it often, so it copies only those
// with an error.
func (l *Lane) Unproven() (untried []targets.Key, failed []Record, of int) {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key := range l.keys {
		switch r := s.records[key]; {
		case !r.status.Proven.IsZero():
		case r.status.Err == nil:
			untried = append(untried, key)
		default:
			failed = append(failed, s.copy(r))
		}
	}
	slices.Sort(untried)
	slices.SortFunc(failed, func(a, b Record) int { return cmp.Compare(a.Spec.Key, b.Spec.Key) })
	return untried, failed, len(l.keys)
}

// Renew forgets the knowledge about Conjur, because another client will ask it: proofs,
// failures, and the list of variables. The knowledge about the destination stays.
func (l *Lane) Renew() {
	s := l.wholeSet()
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

// Expiries returns the expiries of the targets with certificates.
func (l *Lane) Expiries() map[targets.Key]targets.Expiry {
	s := l.wholeSet()
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

// Contest stands for a client that changes a Secret again and again, in [Set.Hinder].
const Contest = "contested"

// Hinder records why a user of a Secret did not get it; nil means that it did. The user is
// an item of the Secret's Restart or PullFor, or Contest.
func (s *Set) Hinder(key targets.Key, user string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	switch {
	case r == nil:
	case why == nil:
		delete(r.hindered, user)
	default:
		if r.hindered == nil {
			r.hindered = map[string]string{}
		}
		r.hindered[user] = user + ": " + why.Error()
	}
}

// Limited returns, for each target with a limitation, why: parts of its definition have no
// effect, or users did not get it. Another client that changes it again and again is a
// limitation, too.
func (l *Lane) Limited() map[targets.Key][]string {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	limited := map[targets.Key][]string{}
	for key := range l.keys {
		r := s.records[key]
		if r.spec.Secret == nil {
			continue
		}
		why := targets.Texts(r.spec.Secret.Warnings)
		for _, user := range slices.Concat(r.spec.Secret.Restart, r.spec.Secret.PullFor, []string{Contest}) {
			if text, hindered := r.hindered[user]; hindered {
				why = append(why, text)
			}
		}
		if len(why) > 0 {
			limited[key] = why
		}
	}
	return limited
}
