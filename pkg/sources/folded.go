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
	present map[string]error // watch → why it does not stand
}

// note takes how it goes with one watch, nil meaning well, and reports one of
// the troubles that there are, the same one while it lasts.
func (f *folded) note(report Report, subject, watch string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.present == nil {
		f.present = map[string]error{}
	}
	delete(f.present, watch)
	if err != nil {
		f.present[watch] = err
	}
	if len(f.present) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(f.present)))
		err = f.present[first]
		if first != "" {
			err = fmt.Errorf("%s: %w", first, err)
		}
	}
	report(subject, err)
}

// any tells whether one of the troubles is of a kind.
func (f *folded) any(kind func(error) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.present {
		if kind(err) {
			return true
		}
	}
	return false
}
