package variables

import "github.com/secretsync/syncer/pkg/secret"

// Verdict is the conclusion about one variable.
type Verdict int

const (
	// Unknown: the server sent no usable answer, so no conclusion is possible.
	Unknown Verdict = iota
	// Found: the server sent the value.
	Found
	// Gone: it is proven that the variable has no value for this identity.
	Gone
)

// String returns the verdict in lower case, for logs and tests.
func (v Verdict) String() string {
	switch v {
	case Found:
		return "found"
	case Gone:
		return "gone"
	default:
		return "unknown"
	}
}

// Answer is the answer about one variable.
type Answer struct {
	Verdict Verdict
	// Value is set if the Verdict is Found. The receiver owns and wipes it.
	Value secret.Value
	// Request is equal for values of one Fetch that arrived in the same answer. If
	// the server keeps its promise, they existed at one moment. Requests are
	// numbered from 1.
	Request int
	// Err is nil if the Verdict is Found, and a *GoneError if it is Gone. Otherwise
	// it is the reason for Unknown. It is a *SuspectError while the proof is
	// incomplete, and a *HeldError while the brake delays a removal. It is a
	// *ReturnedError while an earlier value is held back. It may be a *StatusError, a *PauseError, ErrBudget, or an
	// error of the connection or the context.
	Err error
	// GoneFor maps tenants to the proof for them; see Use. The brake may hold back for
	// one tenant what already counts for another one.
	GoneFor map[string]error
}

// For returns the answer for a tenant.
func (a Answer) For(tenant string) Answer {
	if proof := a.GoneFor[tenant]; proof != nil {
		return Answer{Verdict: Gone, Err: proof}
	}
	return a
}

func unknown(err error) Answer { return Answer{Err: err} }
