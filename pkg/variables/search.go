package variables

import (
	"cmp"
	"errors"
	"slices"
)

// A gateway may refuse all that asks for values, for good. A search for the
// variables at fault then costs the whole budget and finds none. So after a call
// that asked on and heard nothing that only Conjur can say, the next ones ask for
// each chunk once, which shows when the gateway is gone, and some of them for one
// variable by itself, which shows it too where a chunk is refused for another
// reason. Once something is heard, they search again (decision 012).

// longestUnsampled is such that one in so many calls, at least, asks for a variable
// by itself.
const longestUnsampled = 4

// errFruitless says that a variable was not asked for because what was asked for
// before had no answer of Conjur's.
var errFruitless = errors.New("not asked: what was asked for before was refused, and not in Conjur's form")

// end ends a call.
func (k *call) end(isPoll bool) {
	switch {
	case k.heard:
		k.fruitless.Store(0)
	case k.refused:
		k.fruitless.Add(1)
	}
	k.report(isPoll)
}

// worthwhile reports whether a variable that was refused before is to be asked for
// by itself: always, or once in this call, or not.
func (k *call) worthwhile() bool {
	n := k.before
	if k.heard || n == 0 {
		return true
	}
	k.refused = true // this call too, also if nothing else is asked for
	if k.sampled || n&(n-1) != 0 && n%longestUnsampled != 0 {
		return false
	}
	k.sampled = true
	return true
}

// searchable reports whether a search among refused variables can find something.
// If those before were fruitless, the one variable that was not asked for longest
// decides.
func (k *call) searchable(ids []string) bool {
	switch {
	case k.heard || k.before == 0:
		return true
	case !k.worthwhile() || !k.pay(proven):
		return false
	}
	r := k.read(k.memory.longestUnasked(ids), "")
	r.Value.Wipe()
	return k.heard
}

// longestUnasked returns the variable that was not asked for by itself longest.
func (m *memory) longestUnasked(ids []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.MinFunc(ids, func(a, b string) int { return cmp.Compare(m.get(a).asked, m.get(b).asked) })
}
