package variables

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
)

// bisection finds the variables that caused the refusal of one chunk. A batch
// returns all values or none, and names at most one faulty variable, unless the
// server is the embedded one. Named variables are removed, otherwise the batch is
// halved. When the budget is spent, the remaining parts stay for the next poll,
// which continues.
type bisection struct {
	*call
	h        handler
	todo     []*part // a stack
	kept     []*chunk
	progress bool // some variable was answered for or set aside
}

// part is a piece of the chunk.
type part struct {
	*chunk
	// presumed means that no request is needed because the answer follows: the
	// whole was refused, but its twin was not.
	presumed bool
	twin     *part
}

// bisect requests a chunk, and pieces of it if it is refused. It returns the chunks
// that replace it next time.
func (k *call) bisect(root *chunk, h handler) []*chunk {
	n := bisection{call: k, h: h, todo: []*part{{chunk: root}}}
	for len(n.todo) > 0 {
		p := n.todo[len(n.todo)-1]
		n.todo = n.todo[:len(n.todo)-1]
		n.next(p)
	}
	if !n.progress && len(n.kept) > 1 {
		root.sick = true // pieces without findings would only cost requests
		return []*chunk{root}
	}
	return n.kept
}

func (n *bisection) next(p *part) {
	several := len(p.IDs) > 1
	switch {
	case n.stop != nil:
		n.leave(p, n.stop)
	case several && !p.single && p.size > n.room():
		n.halve(p, false)
	case several && p.presumed:
		n.halve(p, true)
	case (p.single || p.presumed) && p.paid() && !n.worthwhile():
		n.leave(p, errFruitless)
	case p.paid() && !n.pay(p.trust), p.trust > proven && !p.paid() && !n.canPay():
		n.leave(p, ErrBudget)
	case p.single || p.presumed:
		n.alone(p)
	default:
		n.ask(p)
	}
}

// paid reports whether the budget pays for a request for the part.
func (p *part) paid() bool { return p.sick || p.presumed }

// payForMissing charges the budget for a part that was never found, and was not found now
// either. Finding a variable is free. Otherwise the budget would limit how many
// variables a process can start with.
func (n *bisection) payForMissing(p *part) {
	if p.trust > proven && !p.paid() {
		n.pay(p.trust)
	}
}

// leave keeps a part without an answer.
func (n *bisection) leave(p *part, err error) {
	n.kept = append(n.kept, p.chunk)
	n.h.unknown(p.IDs, err)
}

func (n *bisection) halve(p *part, refused bool) {
	first, second := p.halves(n.encodedLen)
	a, b := &part{chunk: first}, &part{chunk: second}
	if refused {
		first.sick, second.sick = true, true
		a.twin = b
	}
	n.todo = append(n.todo, b, a)
}

func (n *bisection) ask(p *part) {
	v := n.batch(p.chunk)
	if v.Form == conjur.Given || v.Form == conjur.Unchanged {
		n.anyGood, n.conjurAnswered, n.progress, p.sick = true, true, true, false
		n.trouble.End()
		if p.twin != nil {
			p.twin.presumed = true
		}
		n.kept = append(n.kept, p.chunk)
		n.h.values(p.chunk, v)
		return
	}
	n.payForMissing(p)
	switch v.Form {
	case conjur.Missing:
		n.name(p, v.Missing)
	case conjur.Forbidden, conjur.Failed, conjur.Refused, conjur.TooLarge: // a half may fit
		n.refuse(p, v.Reading)
	case conjur.TooLong:
		n.shorten(p, v.Reading)
	case conjur.Down:
		n.stop = v.Err
		fallthrough
	default:
		n.leave(p, v.Err)
	}
}

// name removes the faulty variables from the part and continues with the others.
func (n *bisection) name(p *part, culprits []string) {
	for _, id := range culprits {
		n.memory.setAside(id, n.step)
	}
	n.progress, n.conjurAnswered = true, true
	rest := p.without(n.encodedLen, func(id string) bool { return slices.Contains(culprits, id) })
	rest.sick = true
	if len(rest.IDs) > 0 && !n.consult(rest) {
		n.todo = append(n.todo, &part{chunk: rest})
	}
}

func (n *bisection) refuse(p *part, r conjur.Reading) {
	if n.blameServer(r) && n.inTrouble(p.IDs[0]) {
		n.stop = r.Err
		n.leave(p, r.Err)
		return
	}
	p.sick, n.refused = true, true
	switch {
	case !n.searchable(p.IDs):
		n.leave(p, r.Err)
	case n.consult(p.chunk):
	case len(p.IDs) > 1:
		n.halve(p, true)
	default:
		n.todo = append(n.todo, &part{chunk: p.chunk, presumed: true})
	}
}

// shorten lowers the limit of request lines, so that the part is too long and is
// split. If no shorter line is possible, the length was not the reason.
func (n *bisection) shorten(p *part, r conjur.Reading) {
	length := n.bareLine + p.size
	switch {
	case len(p.IDs) > 1 && n.line.refused(length):
		n.log.Info("the request line was too long for the server or a proxy; shorter ones are used from now on",
			zap.Int("status", r.Status), zap.Int("bytes", length), zap.Int("limit", n.line.get()))
		n.todo = append(n.todo, p)
	case r.Status == http.StatusBadRequest:
		n.line.restore()
		n.refuse(p, r)
	default:
		n.leave(p, r.Err)
	}
}

// alone requests one variable individually.
func (n *bisection) alone(p *part) {
	id := p.IDs[0]
	r := n.readVariable(id, p.etag)
	if r.Verdict != Found {
		n.payForMissing(p)
	}
	n.h.single(id, r)
	if n.memory.isAside(id) {
		n.progress = true
		return
	}
	if p.presumed && r.Verdict == Found {
		n.memory.isolated(id)
		n.progress = true
	}
	ch := p.chunk
	ch.single = true
	if r.Verdict == Found {
		ch.etag = r.etag
	}
	if n.stop == nil {
		ch.sick = r.Err != nil
	}
	n.kept = append(n.kept, ch)
}

const (
	// manyRefusals is the number of refused batches in one call that justify a look
	// at the list of variables.
	manyRefusals = 3
	// leastBetweenLooks is the minimum time between two looks.
	leastBetweenLooks = 10 * time.Second
	// mostPagesToLook bounds the cost of a look, to 20,000 variables.
	mostPagesToLook = 20
)

// consult applies the list of variables to a refused chunk. A batch names at most
// one faulty variable, while the list shows all missing ones. The list only
// determines the order of requests, and proves nothing. consult returns true if it
// replaced the chunk.
func (n *bisection) consult(ch *chunk) bool {
	if n.refusals++; n.refusals < manyRefusals && ch.trust < unlisted {
		return false
	}
	if ch.trust < unlisted {
		n.refreshList(ch.IDs)
		if n.stop != nil {
			return false
		}
	}
	by := n.memory.byTrust(ch.IDs)
	if len(by[unlisted]) == 0 {
		return false
	}
	if len(by[unlisted]) == len(ch.IDs) {
		for _, id := range ch.IDs { // refused, and not in the list
			n.memory.setAside(id, n.step)
		}
		n.progress = true
		return true
	}
	for t := unlisted; t >= proven; t-- { // todo is a stack: push the last requests first
		if len(by[t]) > 0 {
			some := newChunk(by[t], n.encodedLen)
			some.trust, some.sick = t, true
			n.todo = append(n.todo, &part{chunk: some})
		}
	}
	return true
}

// refreshList reads the list of variables, again if it is old. Refused variables that are
// not listed lose their trust for now.
func (k *call) refreshList(refused []string) {
	if !k.listRead && !k.looks.On() {
		k.listRead = true
		k.looks.Begin(leastBetweenLooks)
		_, err := k.list.Refresh(k.ctx)
		if gone, ok := errors.AsType[*conjur.IdentityError](err); ok {
			k.stop = gone
			return
		}
	}
	if list, readers := k.list.known(); list != nil {
		k.memory.listed(list, readers, k.ids, refused)
	}
}

// A gateway may refuse all requests for values, permanently. A search for the
// faulty variables would then spend the whole budget in vain. Therefore, after a
// call that searched and got no answer that only Conjur gives, the next calls
// request each chunk once. That shows when the gateway is gone. Some of them also
// request one variable individually, which shows it even if a chunk is refused for
// another reason. After an answer from Conjur they search again (decision 012).

// longestUnsampled is the maximum number of calls from one individual request of a
// variable to the next.
const longestUnsampled = 4

// errFruitless means that a variable was not requested because Conjur answered none
// of the earlier requests.
var errFruitless = errors.New("not requested, because earlier requests were refused by an answer that is not Conjur's")

// end ends a call.
func (k *call) end(isPoll bool) {
	switch {
	case k.conjurAnswered:
		k.fruitless.Store(0)
	case k.refused:
		k.fruitless.Add(1)
	}
	k.report(isPoll)
}

// worthwhile reports whether to request a refused variable individually. Depending
// on earlier calls the answer is always, once per call, or never.
func (k *call) worthwhile() bool {
	n := k.before
	if k.conjurAnswered || n == 0 {
		return true
	}
	k.refused = true // even if nothing else is requested
	if k.sampleSpent || n&(n-1) != 0 && n%longestUnsampled != 0 {
		return false
	}
	k.sampleSpent = true
	return true
}

// searchable reports whether a search among refused variables can succeed. If
// earlier searches were in vain, the variable with the oldest request decides.
func (k *call) searchable(ids []string) bool {
	switch {
	case k.conjurAnswered || k.before == 0:
		return true
	case !k.worthwhile() || !k.pay(proven):
		return false
	}
	r := k.readVariable(k.memory.longestUnasked(ids), "")
	r.Value.Wipe()
	return k.conjurAnswered
}

// longestUnasked returns the variable with the oldest individual request.
func (m *memory) longestUnasked(ids []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.MinFunc(ids, func(a, b string) int { return cmp.Compare(m.get(a).asked, m.get(b).asked) })
}
