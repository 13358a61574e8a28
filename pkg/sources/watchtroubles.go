package sources

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// watchTroubles reports many watches as one subject: an unreachable API server is one trouble,
// not a hundred.
type watchTroubles struct {
	mu      sync.Mutex
	present map[string]trouble // by watch
}

// trouble is why a watch does not work. If limited, the watch works, but not as well as
// it could.
type trouble struct {
	err     error
	limited bool
}

// recordTrouble records the state of one watch; a nil error means no trouble. It reports
// one of the present troubles, and keeps to the same one while it lasts. It remarks on a
// limited trouble if no other trouble exists.
func (f *watchTroubles) recordTrouble(reporter Remarker, subject, watch string, t trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.present == nil {
		f.present = map[string]trouble{}
	}
	f.present[watch] = t
	if t.err == nil {
		delete(f.present, watch)
	}
	var worst trouble
	for _, watch := range slices.Sorted(maps.Keys(f.present)) {
		t := f.present[watch]
		if worst.err != nil && (t.limited || !worst.limited) {
			continue
		}
		worst = t
		if watch != "" {
			worst.err = fmt.Errorf("%s: %w", watch, t.err)
		}
	}
	if worst.limited {
		reporter.Remark(subject, worst.err)
	} else {
		reporter.Report(subject, worst.err)
	}
}
