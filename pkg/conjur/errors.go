package conjur

import (
	"errors"
	"fmt"
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

// GoneError is the proof that a variable has no value for this identity.
type GoneError struct {
	Variable     string
	Reason       Reason // as last seen
	FirstSeen    time.Time
	LastSeen     time.Time
	Observations int // how often it was proven, in separate calls
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("variable %q is %s: the server confirmed it %d times since %s",
		e.Variable, e.Reason, e.Observations, e.FirstSeen.UTC().Format(time.RFC3339))
}

// SuspectError says that the server called a variable gone, but not often
// enough yet to act on it.
type SuspectError struct {
	Variable     string
	Reason       Reason
	FirstSeen    time.Time
	Observations int // so far
	Needed       int
}

func (e *SuspectError) Error() string {
	return fmt.Sprintf("variable %q seems to be %s: seen %d of the %d times that are needed to believe it",
		e.Variable, e.Reason, e.Observations, e.Needed)
}

// StatusError is an answer of the server, or of something between it and us,
// from which nothing can be concluded.
type StatusError struct {
	Kind    Kind   // what was asked
	Subject string // the variable or the batch asked for; may be empty
	Status  int    // of the HTTP response itself
	Code    string // Conjur's message code, such as CONJ00016E; often empty
	Detail  string // what is odd about the answer; often empty
}

func (e *StatusError) Error() string {
	text := string(e.Kind)
	if e.Subject != "" {
		text += " " + e.Subject
	}
	text += fmt.Sprintf(": the server answered %d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// PauseError says that the server asked for a pause (Retry-After) which is
// not over yet.
type PauseError struct {
	Status int
	Until  time.Time
}

func (e *PauseError) Error() string {
	return fmt.Sprintf("no request sent: the server answered %d and wants none before %s",
		e.Status, e.Until.UTC().Format(time.RFC3339))
}

// batchSubject names a batch in an error.
func batchSubject(ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("%q", ids[0])
	}
	return fmt.Sprintf("%q and %d more", ids[0], len(ids)-1)
}
