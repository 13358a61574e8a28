package variables

import "github.com/secretsync/syncer/pkg/secret"

// Verdict is what is known about one variable.
type Verdict int

const (
	// Unknown: the server sent no usable answer; nothing follows from it.
	Unknown Verdict = iota
	// Found: the server sent the value.
	Found
	// Gone: it is proven that the variable has no value for this identity.
	Gone
)

// String is the verdict in lower case, for logs and tests.
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
	// Value is set when the Verdict is Found. It belongs to the receiver, who
	// wipes it.
	Value secret.Value
	// Request is the same for values of one Fetch that came with the same
	// request: as far as the server keeps its word, they were all there
	// at one moment. It numbers the requests from 1 on.
	Request int
	// Err is nil when the Verdict is Found, a *GoneError when it is Gone, and
	// otherwise says why nothing is known: a *SuspectError while proof is
	// still being gathered, a *HeldError while the brake holds a removal
	// back, a *ReturnedError while an earlier value is, a *StatusError, a *PauseError, ErrBudget, or an
	// error of the connection or the context.
	Err error
}

func unknown(err error) Answer { return Answer{Err: err} }
