package variables

import (
	"cmp"
	"errors"
	"slices"
)

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
	case k.heard:
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
	if k.heard || n == 0 {
		return true
	}
	k.refused = true // even if nothing else is requested
	if k.sampled || n&(n-1) != 0 && n%longestUnsampled != 0 {
		return false
	}
	k.sampled = true
	return true
}

// searchable reports whether a search among refused variables can succeed. If
// earlier searches were in vain, the variable with the oldest request decides.
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

// longestUnasked returns the variable with the oldest individual request.
func (m *memory) longestUnasked(ids []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.MinFunc(ids, func(a, b string) int { return cmp.Compare(m.get(a).asked, m.get(b).asked) })
}
