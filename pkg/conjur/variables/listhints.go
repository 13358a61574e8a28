package variables

import (
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

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
	for t := unlisted; t >= proven; t-- { // todo is a stack: push the last requests first
		if len(by[t]) > 0 {
			some := newChunk(by[t], n.encodedLen)
			some.trust, some.sick = t, true
			n.todo = append(n.todo, &part{chunk: some})
		}
	}
	return true
}

// look reads the list of variables, again if it is old. Refused variables that are
// not listed lose their trust for now.
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
	if list, readers := k.list.known(); list != nil {
		k.memory.listed(list, readers, k.ids, refused)
	}
}
