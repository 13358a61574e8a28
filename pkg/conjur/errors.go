package conjur

import (
	"fmt"
	"time"
)

// StatusError is an inconclusive answer from the server, or from a proxy.
type StatusError struct {
	Kind    Kind   // kind of the request
	Subject string // the requested variable or batch; may be empty
	Status  int    // of the HTTP response itself
	Code    string // Conjur's message code, such as CONJ00016E; often empty
	Detail  string // why the answer is unusual; often empty

	hint string // what to do about it; "" means what its status says
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: the server answered %d", about(e.Kind, e.Subject), e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if advice := e.advice(); advice != "" {
		text += "; " + advice
	}
	return text
}

// Down reports whether the server, or a proxy, answered nothing about the subject of the
// request: the same answer is due to every other request.
func (e *StatusError) Down() bool { return isDown(e.Status) }

// NoAnswerError means that a request has no answer: it was not sent, or the answer did
// not arrive. Its text is that of Err.
type NoAnswerError struct{ Err error }

func (e *NoAnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// VariableError is why a variable has no usable answer. Its text names the variable.
type VariableError struct {
	Variable string
	Err      error
}

func (e *VariableError) Error() string { return fmt.Sprintf("variable %q: %v", e.Variable, e.Err) }

// Unwrap returns the error without the variable's name.
func (e *VariableError) Unwrap() error { return e.Err }

// about names a request in an error. The subject may be empty.
func about(kind Kind, subject string) string {
	if subject == "" {
		return string(kind)
	}
	return string(kind) + " " + subject
}

// IdentityError means that the server refuses a request that it permits for every
// existing identity, and also refuses a new access token. Probably the identity was
// deleted.
type IdentityError struct {
	Err error // of the last attempt to get an access token
}

func (e *IdentityError) Error() string {
	return "this identity seems to be deleted, because Conjur refuses it a question that every identity may ask; all targets keep their last state; check the identity in the policy: " + e.Err.Error()
}

// Unwrap returns the error of the last attempt to get an access token.
func (e *IdentityError) Unwrap() error { return e.Err }

// PauseError means that the server requested a pause (Retry-After) that has not
// ended.
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
