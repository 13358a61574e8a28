package rotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"github.com/secretsync/syncer/internal/safefile"
)

// Seen keeps the highest step of each set in a file. The next process then knows the
// delivered step, even if no target shows it. A nil Seen keeps nothing.
type Seen struct {
	path string

	mu    sync.Mutex
	steps map[string]uint64 // by the set's id
}

// mostSeen limits the size of the file, in bytes.
const mostSeen = 4 << 20

// OpenSeen reads the file at path. The file need not exist yet.
func OpenSeen(path string) (*Seen, error) {
	s := &Seen{path: path, steps: map[string]uint64{}}
	text, err := safefile.Read(path, mostSeen)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read which steps were seen last: %w", err)
	case json.Unmarshal(text, &s.steps) != nil:
		return nil, fmt.Errorf("%s does not hold the steps of sets; if no backup of Conjur was restored, remove the file", path)
	}
	return s, nil
}

// step returns the highest step of a set; 0 means unknown.
func (s *Seen) step(set string) uint64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps[set]
}

// note stores a step if it is the highest. Goroutines of several sets share the file, so
// writes are serialized.
func (s *Seen) note(set string, step uint64) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if step <= s.steps[set] {
		return nil
	}
	steps := maps.Clone(s.steps)
	steps[set] = step
	text, err := json.Marshal(steps)
	if err == nil {
		err = safefile.Replace(s.path, text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the step %d of the set in %s: %w", step, s.path, err)
	}
	s.steps = steps
	return nil
}
