package variables

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

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

	source    *source // nil if no batch brought it
	unchanged bool    // since the earlier fetch, which has the value
}

// source is the batch that brought answers. With its ETag, a later fetch learns whether
// the values have changed since.
type source struct {
	conjur.Batch
	etag   string                    // of the last answer; a hash of values, never shown
	prints []fingerprint.Fingerprint // of the values, in a fetch
}

// For returns the answer for a tenant.
func (a Answer) For(tenant string) Answer {
	if proof := a.GoneFor[tenant]; proof != nil {
		return Answer{Verdict: Gone, Err: proof}
	}
	return a
}

func unknown(err error) Answer { return Answer{Err: err} }

// ErrBudget means that a variable was not requested because the server refused too
// many batches in this call. A later call continues.
var ErrBudget = errors.New("not requested yet, because Conjur refused too many batches; the next attempt continues")

// Reason says in which way a variable is gone.
type Reason string

const (
	// Missing: it does not exist, has no value, or is invisible to this identity.
	// The server does not distinguish these.
	Missing Reason = "missing"
	// Forbidden: it is visible, but this identity may not read it.
	Forbidden Reason = "forbidden"
)

// GoneError is the proof that a variable has no value for this identity. Its text
// is complete.
type GoneError struct {
	Variable string
	Reason   Reason // at the last observation
	// Identity is the server's name for us in all observations, such as "host/app".
	Identity     string
	FirstSeen    time.Time
	LastSeen     time.Time
	Observations int // number of proofs, in separate calls
	// Times lists the times of the observations. If there are very many, it has the
	// first ones and the last.
	Times []time.Time
	// Held is how long the brake delayed the removal.
	Held time.Duration
	// NeverFound means that this process has never found a value.
	NeverFound bool
}

func (e *GoneError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "variable %q is %s: the server confirmed it %d times since %s",
		e.Variable, e.Reason, e.Observations, e.FirstSeen.UTC().Format(time.RFC3339))
	if e.Identity != "" {
		fmt.Fprintf(&text, " to %q", e.Identity)
	}
	for i, t := range e.Times {
		text.WriteString(map[bool]string{true: " (at ", false: ", "}[i == 0] + t.UTC().Format(time.TimeOnly))
	}
	if len(e.Times) > 0 {
		text.WriteString(")")
	}
	if e.Held > 0 {
		fmt.Fprintf(&text, ", and still after it was held back for %s", e.Held.Round(time.Second))
	}
	return text.String()
}

// SuspectError means that the server called a variable gone, but the proof is
// incomplete.
type SuspectError struct {
	Variable     string
	Reason       Reason
	FirstSeen    time.Time
	Observations int       // so far
	Needed       int       // at least
	NotBefore    time.Time // end of the grace period
}

func (e *SuspectError) Error() string {
	text := fmt.Sprintf("variable %q seems to be %s: seen %d of the %d times that prove it",
		e.Variable, e.Reason, min(e.Observations, e.Needed), e.Needed)
	switch {
	case e.Observations == 0 && e.Reason == Forbidden:
		return fmt.Sprintf("variable %q seems to be forbidden, as another one with the same owner and permissions is", e.Variable)
	case e.Observations < e.Needed:
		return text
	case e.NotBefore.After(e.FirstSeen) && time.Now().Before(e.NotBefore):
		return text + ", and the grace period ends at " + e.NotBefore.UTC().Format(time.RFC3339)
	}
	return text + ", but not yet with a newer token, or too little is known about the other variables"
}

// HeldError means that a variable is proven to be gone, together with most others
// of this identity. Therefore the proof counts only after some time.
type HeldError struct {
	Suspicion *SuspectError
	Variables int // gone at once
	Of        int // in use
	Until     time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("variable %q is %s, as are %d of %d variables at once, which may be a mistake: removal is held back until %s",
		e.Suspicion.Variable, e.Suspicion.Reason, e.Variables, e.Of, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns the suspicion, because a held proof permits no other conclusion.
func (e *HeldError) Unwrap() error { return e.Suspicion }
