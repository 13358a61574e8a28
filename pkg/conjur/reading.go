package conjur

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
)

// Form classifies an answer, by the status of the response and by features that
// only Conjur's answers have.
type Form int

const (
	// Unusable: the answer is inconclusive.
	Unusable Form = iota
	// Given: the requested data, or yes.
	Given
	// Unchanged: 304 to a conditional request.
	Unchanged
	// Missing: 404 in Conjur's format about a requested variable.
	Missing
	// Forbidden: 403 without a body. A gateway may answer the same.
	Forbidden
	// No: 404 without a body to a Check. A gateway may answer the same.
	No
	// Failed: 500 without a body. It occurs for a value that the server cannot
	// decrypt, and for everything while its database is down.
	Failed
	// Refused: 406 or 422. One of several variables may be the reason.
	Refused
	// TooLong: 400, 414 or 431. The request line may be the reason.
	TooLong
	// TooLarge: the answer exceeds its limit.
	TooLarge
	// Formless: 200 for one variable, without the headers of a value from Conjur. A
	// batch of one names the variable.
	Formless
	// Down: no answer, or an answer after which other requests are useless for now.
	Down
)

// Reading is the server's answer to one request.
type Reading struct {
	Form   Form
	Status int    // of the HTTP response; 0 if there is none
	Token  *Token // of the request; nil if there is no answer
	ETag   string // of the given data; a hash of values, never shown
	// Err is nil if the Form is Given, Unchanged or No. It is a *StatusError if
	// there was an answer.
	Err error

	answer StatusError
	replay string // how it shows that a cache repeats the answer; "" if not
}

// Because returns the answer as an error with a detail. Without an answer it
// returns Err.
func (r Reading) Because(detail string) error {
	if r.Status == 0 {
		return r.Err
	}
	e := r.answer
	if e.Detail = detail; r.Form == Unusable && r.replay != "" {
		e.Detail = "a cache seems to have answered instead of Conjur, because " + r.replay + "; exempt Conjur from the cache"
	}
	return &e
}

// as returns the Reading with a form. The error is nil if the form is a success. An answer
// that a cache repeats is Unusable if it could belong to a proof.
func (r Reading) as(form Form, detail string) Reading {
	if r.replay != "" && r.isEvidence(form) {
		form = Unusable
	}
	r.Form, r.Err = form, nil
	if form != Given && form != Unchanged && form != No {
		r.Err = r.Because(detail)
	}
	return r
}

// isEvidence reports whether an answer of this form can belong to a proof that a
// variable is gone.
func (r Reading) isEvidence(form Form) bool {
	switch r.answer.Kind {
	case KindVariable:
		return form == Missing || form == Forbidden
	case KindCheck:
		return form == Given || form == No || form == Missing
	case KindResource, KindWhoami:
		return form == Given
	}
	return false
}

// Values is the server's answer about the values of variables.
type Values struct {
	Reading
	Found map[string]secret.Value // the receiver owns and wipes them
	// Bad maps a variable to the reason why its value is unusable, if the answer is
	// usable for other variables.
	Bad map[string]error
	// Missing lists variables that the server called missing. In an answer per
	// variable it includes forbidden ones. The list may be incomplete.
	Missing []string
}

// reading sends a request with the token, or with the shared token if t is nil. The
// form is Down if there is no answer, and for statuses that mean the same.
func (c *Client) reading(ctx context.Context, t *Token, kind Kind, subject string, req *http.Request, err error) (*reply, Reading) {
	var r *reply
	switch {
	case err != nil:
		return nil, Reading{Err: err}
	case t == nil:
		r, err = c.ask(ctx, kind, subject, req)
	default:
		r, err = c.askWith(ctx, t, kind, subject, req)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, Reading{Form: TooLarge, Err: err}
	case errors.Is(err, errCompressed):
		return nil, Reading{Err: err}
	case err != nil:
		return nil, Reading{Form: Down, Err: &NoAnswerError{err}}
	}
	reading := Reading{Status: r.status, Token: r.token, answer: *r.statusError("")}
	if kind == KindVariable && r.status != http.StatusOK || slices.Contains([]Kind{KindCheck, KindResource, KindWhoami}, kind) {
		reading.replay = c.replays.sign(r)
	}
	return r, reading.as(formByStatus(r), "")
}

// formByStatus returns the form of an answer as far as the status and the presence of a
// body determine it. A 404 has another meaning for each request, which its method knows.
func formByStatus(r *reply) Form {
	switch r.status {
	case http.StatusForbidden:
		if len(r.body) == 0 {
			return Forbidden
		}
	case http.StatusInternalServerError:
		if len(r.body) == 0 {
			return Failed
		}
	case http.StatusNotAcceptable, http.StatusUnprocessableEntity:
		return Refused
	case http.StatusBadRequest, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return TooLong
	}
	if isDown(r.status) {
		return Down
	}
	return Unusable
}

// isDown reports whether other requests are useless for now after this status.
func isDown(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// notConjur is the detail for answers that any proxy may give.
const notConjur = "not in Conjur's form; something on the way may have answered"
