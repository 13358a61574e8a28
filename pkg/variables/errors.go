package variables

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrBudget says that a variable was not asked for because the server refused
// too many batches of this call; a later call goes on from there.
var ErrBudget = errors.New("not asked: this call's budget of requests is used up, a later one goes on")

// Reason is how a variable is gone.
type Reason string

const (
	// Missing: it does not exist, has no value, or cannot be seen by this
	// identity; the server makes no difference between them.
	Missing Reason = "missing"
	// Forbidden: it can be seen, but this identity may not read it.
	Forbidden Reason = "forbidden"
)

// GoneError is the proof that a variable has no value for this identity. Its
// text says the whole of it.
type GoneError struct {
	Variable string
	Reason   Reason // as last seen
	// Identity is how the server called us each time, such as "host/app".
	Identity     string
	FirstSeen    time.Time
	LastSeen     time.Time
	Observations int // how often it was proven, in separate calls
	// Times are those of the observations; of very many the first ones and
	// the last.
	Times []time.Time
	// Held is for how long the brake held the removal back.
	Held time.Duration
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

// SuspectError says that the server called a variable gone, but that the proof
// is not complete.
type SuspectError struct {
	Variable     string
	Reason       Reason
	FirstSeen    time.Time
	Observations int       // so far
	Needed       int       // at least
	NotBefore    time.Time // the end of the grace
}

func (e *SuspectError) Error() string {
	text := fmt.Sprintf("variable %q seems to be %s: seen %d of the %d times that are needed to believe it",
		e.Variable, e.Reason, min(e.Observations, e.Needed), e.Needed)
	switch {
	case e.Observations < e.Needed:
		return text
	case e.NotBefore.After(e.FirstSeen) && time.Now().Before(e.NotBefore):
		return text + ", which is not before " + e.NotBefore.UTC().Format(time.RFC3339)
	}
	return text + ", but not yet by a newer token, or not yet while the others are known to be there"
}

// HeldError says that a variable is proven to be gone together with most others
// of this identity, so that it is not believed before some time has passed.
type HeldError struct {
	Suspicion *SuspectError
	Variables int // are gone at once
	Of        int // so many in use
	Until     time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("variable %q is %s, as are %d of %d variables at once, which may be a mistake: removal is held back until %s",
		e.Suspicion.Variable, e.Suspicion.Reason, e.Variables, e.Of, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns the suspicion: nothing else follows from a proof that is held
// back.
func (e *HeldError) Unwrap() error { return e.Suspicion }
