package targets

import "time"

// Expiry is the earliest expiry of a certificate in a target, and the variable with the
// certificate. The zero Expiry means that the target has no certificate.
type Expiry struct {
	At       time.Time
	Variable string
}

// First returns the earlier one of the two.
func (e Expiry) First(other Expiry) Expiry {
	if e.At.IsZero() || !other.At.IsZero() && other.At.Before(e.At) {
		return other
	}
	return e
}
