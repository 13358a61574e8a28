package targets

import "time"

// Expiry is when the first of the certificates in a target expires, and the
// variable that has it. The zero Expiry is that of a target without any.
type Expiry struct {
	At       time.Time
	Variable string
}

// First returns the one of the two that comes first.
func (e Expiry) First(other Expiry) Expiry {
	if e.At.IsZero() || !other.At.IsZero() && other.At.Before(e.At) {
		return other
	}
	return e
}

// Expiries returns those of the targets that have certificates.
func (l *Lane) Expiries() map[Key]Expiry {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	expiries := map[Key]Expiry{}
	for key := range l.keys {
		if e := s.records[key].status.Expires; !e.At.IsZero() {
			expiries[key] = e
		}
	}
	return expiries
}
