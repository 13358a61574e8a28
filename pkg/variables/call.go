package variables

import (
	"context"

	"github.com/secretsync/syncer/pkg/conjur"
)

// call is one Changed or one flight of Fetch: what it may spend, and what it
// has learnt.
type call struct {
	*Client
	ctx    context.Context
	ids    []string // that it is about, in ascending order
	step   uint64   // distinguishes the observations of this call from those of others
	budget int      // requests left beyond the first one for each sound chunk
	// stop is why the server is not to be asked for anything more in this
	// call; nil while all is well.
	stop     error
	anyGood  bool  // some request for values was answered well
	heard    bool  // or something else was said that only Conjur can say
	before   int32 // how many calls in a row had asked on and heard nothing
	sampled  bool  // the one variable that they leave to this one was asked for
	refused  bool  // some batch or variable was
	bare500s int   // while none was
	refusals int   // of batches
	looked   bool  // at the list of variables
	afresh   bool  // the connections that were idle have been closed
	whoami   map[*conjur.Token]identity
	controls map[*conjur.Token]error // whether a check was answered yes where it must be
}

// handler takes the answers of a call.
type handler interface {
	// values is for a batch that was Given or is Unchanged.
	values(ch *chunk, v conjur.Values)
	// single is for a variable that was asked for by itself.
	single(id string, r reading)
	// unknown is for variables that could not be asked for.
	unknown(ids []string, err error)
	// perVariable asks for the variables of a refused batch in a way that answers
	// for each; false if it has none, or the server.
	perVariable(ids []string) bool
}

func (c *Client) begin(ctx context.Context, ids []string) *call {
	return &call{
		Client: c, ctx: ctx, ids: ids, step: c.memory.step(), before: c.fruitless.Load(),
		budget: c.memory.budget(), whoami: map[*conjur.Token]identity{}, controls: map[*conjur.Token]error{},
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

// batch asks for a chunk; conditionally, if it has an ETag.
func (k *call) batch(ch *chunk) conjur.Values {
	v := k.conjur.Batch(k.ctx, &ch.Batch, ch.etag)
	if v.Form == conjur.Given {
		ch.etag = v.ETag
	}
	return v
}

// asides asks for variables that are set aside, each by itself, the longest
// unasked first, until only a reserve of the budget is left. It returns those
// that it asked for.
func (k *call) asides(ids []string, reserve int, h handler) (asked []string) {
	for i, id := range ids {
		if k.stop != nil || k.budget <= reserve || !k.worthwhile() || !k.pay(k.memory.trustOf(id)) {
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

// keepHalf calls f, which narrows, with no more than half of the budget if there
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
func (k *call) room() int { return k.line.get() - k.bareLine }
