package variables

import (
	"context"

	"github.com/secretsync/syncer/pkg/conjur"
)

// call is one Changed or one flight of Fetch. It holds the call's budget and
// findings.
type call struct {
	*Client
	ctx    context.Context
	ids    []string // the call's variables, in ascending order
	step   uint64   // identifies the observations of this call
	budget int      // requests left, besides the first for each sound chunk
	more   int      // added to the budget when it is spent, if Conjur was heard
	// stop is the reason to send no more requests in this call, or nil.
	stop           error
	anyGood        bool  // a request for values succeeded
	conjurAnswered bool  // anyGood, or another answer that only Conjur gives
	before         int32 // preceding calls in a row that searched in vain
	sampleSpent    bool  // the single permitted sample was requested
	refused        bool  // a batch or variable was refused
	bare500s       int   // bare 500 answers while none was good
	refusals       int   // of batches
	listRead       bool  // the list of variables was read
	reconnected    bool  // idle connections were closed
	whoami         map[*conjur.Token]identity
	controls       map[*conjur.Token]error // result of a check that must be answered yes
}

const (
	// budgetForAll is the budget of a call if a target holds all variables.
	budgetForAll = 512
	// requestsEach is the usual number of requests that show that one variable is
	// not readable, with a share of the batches that led to it.
	requestsEach = 6
)

// handler handles the answers of a call.
type handler interface {
	// values handles a batch that is Given or Unchanged.
	values(ch *chunk, v conjur.Values)
	// single handles a variable that was requested individually.
	single(id string, r reading)
	// unknown handles variables that could not be requested.
	unknown(ids []string, err error)
}

func (c *Client) begin(ctx context.Context, ids []string) *call {
	budget, more := c.memory.budget(len(ids))
	return &call{
		Client: c, ctx: ctx, ids: ids, step: c.memory.step(), before: c.fruitless.Load(),
		budget: budget, more: more, whoami: map[*conjur.Token]identity{}, controls: map[*conjur.Token]error{},
	}
}

// left returns the requests that are left in the budget.
func (k *call) left() int {
	if k.budget <= 0 && k.conjurAnswered {
		k.budget, k.more = k.budget+k.more, 0
	}
	return k.budget
}

// budget returns the number of requests that a call for n variables may spend, and
// how many more once it heard from Conjur.
func (m *memory) budget(n int) (budget, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.all {
		return m.rules.RequestBudget, 0
	}
	if m.rules.Once {
		more = requestsEach * n
	}
	return max(m.rules.RequestBudget, budgetForAll), more
}

// once reports whether the process delivers once.
func (m *memory) once() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rules.Once
}

// holdsAll records that a target holds all variables. Many of them may have no value
// or may not be readable.
func (m *memory) holdsAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = true
}

// pay deducts a request from the budget. It returns false if the budget is spent.
// For variables that were never found, it also returns false after many recent
// payments, because others would have to wait for the rate limit.
func (k *call) pay(t trust) bool {
	if k.left() <= 0 || t > proven && !k.searches() {
		return false
	}
	k.budget--
	return true
}

// canPay reports whether pay would accept a request for variables that were never
// found.
func (k *call) canPay() bool {
	return k.left() > 0 && (k.memory.once() || k.search.Tokens() >= 1)
}

// searches takes a payment from the limit of all budgets. Without polls, nothing waits
// for the rate limit besides the payer.
func (k *call) searches() bool { return k.memory.once() || k.search.Allow() }

// batch requests a chunk. If the chunk has an ETag, the request is conditional.
func (k *call) batch(ch *chunk) conjur.Values {
	v := k.conjur.Batch(k.ctx, &ch.Batch, ch.etag)
	if v.Form == conjur.Given {
		ch.etag = v.ETag
	}
	return v
}

// asides requests variables that are set aside, individually, until only reserve
// requests of the budget are left. Variables with the oldest request come first. It
// returns the requested variables.
func (k *call) asides(ids []string, reserve int, h handler) (asked []string) {
	for i, id := range ids {
		if k.stop != nil || k.left() <= reserve || !k.worthwhile() || !k.pay(k.memory.trustOf(id)) {
			return ids[:i]
		}
		h.single(id, k.readVariable(id, ""))
	}
	return ids
}

// leastNarrowing is the number of requests for halving a full chunk down to one
// faulty variable and determining its state. With a smaller budget, each call would
// start over and make no progress.
const leastNarrowing = 12

// keepHalf calls f, which narrows. If use is true, it reserves half of the budget
// for afterwards.
func (k *call) keepHalf(use bool, f func()) {
	kept := 0
	if use {
		kept = max(min(k.budget/2, k.budget-leastNarrowing), 0)
	}
	k.budget -= kept
	f()
	k.budget = max(k.budget, 0) + kept
}

// room returns the bytes of ids that fit in a batch's request line.
func (k *call) room() int { return k.line.get() - k.bareLine }
