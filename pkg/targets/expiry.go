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
