package variables

import (
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

const (
	// manyRefusals is how many refused batches in one call are worth a look at
	// the list of variables.
	manyRefusals = 3
	// leastBetweenLooks is the time between two.
	leastBetweenLooks = 10 * time.Second
	// mostPagesToLook bounds what a look costs: 20,000 variables.
	mostPagesToLook = 20
)

// consult follows what the list of variables says about a refused chunk: a batch
// names one culprit at most, the list says of all which are not there. It only
// says in which order to ask, and proves nothing. It reports whether it has
// found something to do; the chunk is dealt with then.
func (n *narrowing) consult(ch *chunk) bool {
	if n.refusals++; n.refusals < manyRefusals && ch.trust < unlisted {
		return false
	}
	if ch.trust < unlisted {
		n.look(ch.IDs)
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
	for t := unlisted; t >= proven; t-- { // what is asked for last comes first
		if len(by[t]) > 0 {
			some := newChunk(by[t], n.encodedLen)
			some.trust, some.sick = t, true
			n.todo = append(n.todo, &part{chunk: some})
		}
	}
	return true
}

// look takes in the list of variables, anew if it is old. What was refused and
// is not listed is not trusted for now.
func (k *call) look(refused []string) {
	if !k.looked && !k.looks.On() {
		k.looked = true
		k.looks.Begin(leastBetweenLooks)
		_, err := k.list.Refresh(k.ctx)
		if gone, ok := errors.AsType[*conjur.IdentityError](err); ok {
			k.stop = gone
			return
		}
	}
	if list := k.list.IDs(); list != nil {
		k.memory.listed(list, k.ids, refused)
	}
}
