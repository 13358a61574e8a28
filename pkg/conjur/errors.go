package conjur

import (
	"fmt"
	"time"
)

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
	text := fmt.Sprintf("%s: the server answered %d", about(e.Kind, e.Subject), e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// about names a request in an error; the subject may be empty.
func about(kind Kind, subject string) string {
	if subject == "" {
		return string(kind)
	}
	return string(kind) + " " + subject
}

// IdentityError says that the server refuses this identity what it grants every
// living one, and refuses it a new access token too: it was deleted, it seems.
type IdentityError struct {
	Err error // of the last attempt to get an access token
}

func (e *IdentityError) Error() string {
	return "this identity seems to be deleted, as the server refuses it what every living one may ask; what is there stays: " + e.Err.Error()
}

// Unwrap returns the error of the last attempt to get an access token.
func (e *IdentityError) Unwrap() error { return e.Err }

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
