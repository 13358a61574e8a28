package conjur

import (
	"context"
	"errors"
	"net/http"

	"github.com/secretsync/syncer/pkg/secret"
)

// Form is what an answer is known by: the status of the response itself, and
// what only Conjur sends with it.
type Form int

const (
	// Unusable: nothing follows from the answer.
	Unusable Form = iota
	// Given: what was asked for, or yes.
	Given
	// Unchanged: 304 to a conditional question; it is as it was.
	Unchanged
	// Missing: 404 in Conjur's own words about a variable that was asked for.
	Missing
	// Forbidden: 403 without a body, as any gateway may answer too.
	Forbidden
	// No: 404 without a body to a Check, as any gateway may answer too.
	No
	// Failed: 500 without a body, as for a value that the server cannot decrypt, and
	// for everything while its database is down.
	Failed
	// Refused: 406 or 422; one of several variables may be the reason.
	Refused
	// TooLong: 400, 414 or 431; the request line may be the reason.
	TooLong
	// TooLarge: the answer is longer than what is read.
	TooLarge
	// Formless: 200 for one variable, without the headers that Conjur sends a value
	// with. A batch of one names the variable.
	Formless
	// Down: there is no answer, or one after which asking for something else is of no
	// use now.
	Down
)

// Reading is how the server answered one request.
type Reading struct {
	Form   Form
	Status int    // of the HTTP response; 0: there is none
	Token  *Token // that was used; nil: there is no answer
	ETag   string // of what was given; a hash of values, never shown
	// Err is nil if the Form is Given, Unchanged or No. It is a *StatusError if
	// there was an answer.
	Err error

	answer StatusError
}

// Because returns the answer as an error with a detail; Err if there was none.
func (r Reading) Because(detail string) error {
	if r.Status == 0 {
		return r.Err
	}
	e := r.answer
	e.Detail = detail
	return &e
}

// as returns the Reading with a form, and with an error unless all is well.
func (r Reading) as(form Form, detail string) Reading {
	r.Form, r.Err = form, nil
	if form != Given && form != Unchanged && form != No {
		r.Err = r.Because(detail)
	}
	return r
}

// Values is what the server said about the values of variables.
type Values struct {
	Reading
	Found map[string]secret.Value // they belong to the receiver, who wipes them
	// Bad says why a variable has no usable value though the answer has one for
	// others.
	Bad map[string]error
	// Missing is the variables that the server called missing, or forbidden if it
	// answered for each. It names only some of them.
	Missing []string
}

// reading sends a request with the shared token, or with that one if it is not
// nil. Its form is Down if there is no answer, and for statuses that say so.
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
	case err != nil:
		return nil, Reading{Form: Down, Err: err}
	}
	reading := Reading{Status: r.status, Token: r.token, answer: *r.statusError("")}
	return r, reading.as(formOf(r), "")
}

// formOf returns the form of an answer as far as it follows from the status and
// from whether there is a body.
func formOf(r *reply) Form {
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
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Down
	}
	return Unusable
}

// notConjur is the detail of answers that any proxy may give.
const notConjur = "not in Conjur's form; something on the way may have answered"
