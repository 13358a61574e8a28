package conjur

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
)

// call is one Changed or one flight of Fetch: what it may spend, and what it
// has learnt.
type call struct {
	*Client
	ctx    context.Context
	ids    []string // that it is about, in ascending order
	step   uint64   // tells the observations of this call from those of others
	budget int      // requests left beyond the first one for each sound chunk
	// stop is why the server is not to be asked for anything more in this
	// call; nil while all is well.
	stop     error
	anyGood  bool // some request for values was answered well
	bare500s int  // while none was
	refusals int  // of batches
	looked   bool // at the list of variables
	afresh   bool // the connections that were idle have been closed
	whoami   map[*token]identity
	controls map[*token]error // whether a check was answered yes where it must be
	// perVariable, if set, asks a refused batch's variables in a way that
	// answers for each; it is false when the server does not offer that.
	perVariable func(ids []string) bool
}

// handler takes the answers of a call.
type handler interface {
	// values is for a batch; both maps are nil when nothing changed.
	values(ch *chunk, found map[string]secret.Value, bad map[string]error)
	// single is for a variable that was asked for by itself.
	single(id string, r reading)
	// unknown is for variables that could not be asked for.
	unknown(ids []string, err error)
}

func (c *Client) begin(ctx context.Context, ids []string) *call {
	return &call{
		Client: c, ctx: ctx, ids: ids, step: c.memory.step(),
		budget: c.config.RequestBudget, whoami: map[*token]identity{}, controls: map[*token]error{},
	}
}

// pay takes a request from the budget; false when there is none left, or, for
// what was not found before, when so many were paid for of late that others
// would wait for the rate limit.
func (k *call) pay(t trust) bool {
	if k.budget <= 0 || t > proven && !k.search.Allow() {
		return false
	}
	k.budget--
	return true
}

// canPay reports whether pay would take a request for what was not found before.
func (k *call) canPay() bool { return k.budget > 0 && k.search.Tokens() >= 1 }

// outcome is what an answer to a batch means.
type outcome int

const (
	answered outcome = iota // here are the values, or they are as before
	named                   // these variables, named, are empty or missing
	refused                 // something is wrong with one or more of them
	tooLong                 // the request line is
	failed                  // nothing is known about this batch
	down                    // nor would asking for others help
)

// judge reads an answer to a batch. Only the response's own status counts; a
// body that is not in the server's own form makes it a failure.
func (k *call) judge(r *reply, ch *chunk) (o outcome, culprits []string, err error) {
	switch r.status {
	case http.StatusOK:
		return answered, nil, nil
	case http.StatusNotModified:
		if ch.etag != "" {
			return answered, nil, nil
		}
		return failed, nil, r.statusError("though the question was not conditional")
	case http.StatusNotFound:
		id, ok := namedMissing(r.header, r.body, k.config.Account)
		if ok && slices.Contains(ch.ids, id) {
			foreign := func(id string) bool { return !slices.Contains(ch.ids, id) }
			others := slices.DeleteFunc(alsoMissing(r.body, k.config.Account), foreign)
			return named, append(others, id), r.statusError("")
		}
		return failed, nil, r.statusError(notConjur)
	case http.StatusForbidden, http.StatusInternalServerError:
		if len(r.body) == 0 {
			return refused, nil, r.statusError("")
		}
		return failed, nil, r.statusError(notConjur)
	case http.StatusNotAcceptable, http.StatusUnprocessableEntity:
		return refused, nil, r.statusError("")
	case http.StatusBadRequest, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return tooLong, nil, r.statusError("")
	}
	if isDown(r.status) {
		return down, nil, r.statusError("")
	}
	return failed, nil, r.statusError("")
}

// notConjur is the detail of answers that any proxy may give.
const notConjur = "not in Conjur's form; something on the way may have answered"

// isDown tells the statuses after which asking for other variables is of no
// use in the same call.
func isDown(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// batchAnswer is an answer to a batch, with its values if it has any.
type batchAnswer struct {
	outcome  outcome
	status   int
	culprits []string // when named: at least one
	err      error    // when not answered
	found    map[string]secret.Value
	bad      map[string]error
}

// batch asks for a chunk; conditionally, if it has an ETag.
func (k *call) batch(ch *chunk) batchAnswer {
	if ch.req == nil {
		req, err := k.batchRequest(ch.ids)
		if err != nil {
			return batchAnswer{outcome: failed, err: err}
		}
		ch.req = req
	}
	r, err := k.ask(k.ctx, KindBatch, batchSubject(ch.ids), conditional(ch.req, ch.etag))
	switch {
	case errors.Is(err, errTooLong):
		return batchAnswer{outcome: refused, err: err} // half of it may be short enough
	case err != nil:
		return batchAnswer{outcome: down, err: err}
	}
	defer r.wipe()
	a := batchAnswer{status: r.status}
	a.outcome, a.culprits, a.err = k.judge(r, ch)
	if r.status != http.StatusOK {
		return a
	}
	a.found, a.bad, err = decodeBatch(r.header, r.body, ch.ids, k.resource)
	ch.etag = ""
	switch {
	case err != nil:
		return batchAnswer{outcome: failed, status: r.status, err: r.statusError(err.Error())}
	case len(a.bad) == 0:
		ch.etag = r.header.Get("ETag")
	}
	return a
}

func conditional(req *http.Request, etag string) *http.Request {
	if etag != "" {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", etag)
	}
	return req
}

// asides asks for variables that are set aside, each by itself, the longest
// unasked first, until only a reserve of the budget is left. It gives those
// that it asked for.
func (k *call) asides(ids []string, reserve int, h handler) (asked []string) {
	for i, id := range ids {
		if k.stop != nil || k.budget <= reserve || !k.pay(k.memory.trustOf(id)) {
			return ids[:i]
		}
		h.single(id, k.read(id, ""))
	}
	return ids
}

// leastNarrowing is as many requests as lead from a full chunk, by halving, to
// one variable at fault and its state. With fewer, each call would begin anew
// and get no further.
const leastNarrowing = 12

// keepHalf has f, which narrows, spend no more than half of the budget if there
// is use for the rest.
func (k *call) keepHalf(use bool, f func()) {
	kept := 0
	if use {
		kept = max(min(k.budget/2, k.budget-leastNarrowing), 0)
	}
	k.budget -= kept
	f()
	k.budget = max(k.budget, 0) + kept
}

// room is how many bytes of ids a batch's request line can take.
func (k *call) room() int { return k.line.get() - k.bareLine() }
