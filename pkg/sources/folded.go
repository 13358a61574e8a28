package sources

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// folded reports what goes on with many watches as one subject: an API server
// that is away is one trouble, not a hundred.
type folded struct {
	mu      sync.Mutex
	present map[string]trouble // :: watch → its trouble
}

// trouble is why a watch does not stand, or only limited, why it could be
// better.
type trouble struct {
	err     error
	limited bool
}

// note takes how it goes with one watch, a nil error meaning well, and reports
// one of the troubles that there are, the same one while it lasts. One that only
// limits is remarked on when there is no other.
func (f *folded) note(reporter Remarker, subject, watch string, t trouble) {
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
