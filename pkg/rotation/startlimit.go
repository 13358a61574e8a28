package rotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// mostFailures is the number of sets that may fail in a row at one outside system. After
// that, no rotation begins there.
const mostFailures = 3

// startLimiter limits the versions that all sets together may begin.
type startLimiter struct {
	perHour int   // 0: no limit
	sets    []Set // all that count

	mu     sync.Mutex
	begun  map[string][]time.Time // when a set made versions beside others, in the last hour
	failed map[string][]string    // the sets that failed in a row, by outside system
}

// recordBegun records the versions that a set began within the last hour, after the set
// was read. With first, it records nothing if the set's own step has done so: what that
// step has read and begun is newer.
func (l *startLimiter) recordBegun(set string, doc *versions.Document, now time.Time, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.begun[set]; first && known {
		return
	}
	var begun []time.Time
	for i, v := range doc.Versions {
		if first := i == len(doc.Versions)-1; !first && now.Sub(v.Made) < time.Hour {
			begun = append(begun, v.Made)
		}
	}
	l.begun[set] = begun
}

// knows reports whether a set was noted.
func (l *startLimiter) knows(set string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.begun[set]
	return ok
}

// barred returns why a set may not begin a version. With begin, the version counts from
// now on, because several sets may have found room for one more version at the same time.
func (l *startLimiter) barred(p *Plan, doc *versions.Document, now time.Time, begin bool) (why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why = l.barredLocked(p, doc, now); why == "" && begin {
		l.begun[p.ID] = append(l.begun[p.ID], now)
	}
	return why
}

func (l *startLimiter) barredLocked(p *Plan, doc *versions.Document, now time.Time) string {
	if failed := l.failed[p.Outside]; p.Actuator != nil && len(failed) >= mostFailures {
		return fmt.Sprintf("%d sets in a row failed at %s, the last one %s; correct the cause, and start the rotation again", len(failed), p.Outside, failed[len(failed)-1])
	}
	if _, used := doc.Primary(); !used || l.perHour == 0 {
		return ""
	}
	n := 0
	for _, begun := range l.begun {
		for _, at := range begun {
			if now.Sub(at) < time.Hour {
				n++
			}
		}
	}
	if n >= l.perHour {
		return fmt.Sprintf("rotation.perHour is %d, and that many versions were begun within an hour", l.perHour)
	}
	return ""
}

// recordOutcome records the outcome of a version at an outside system.
func (l *startLimiter) recordOutcome(p *Plan, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case good:
		delete(l.failed, p.Outside)
	case !slices.Contains(l.failed[p.Outside], p.ID):
		l.failed[p.Outside] = append(l.failed[p.Outside], p.ID)
	}
}

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

// recordStep stores a step if it is the highest. Goroutines of several sets share the
// file, so writes are serialized.
func (s *Seen) recordStep(set string, step uint64) error {
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

// readOthers reads the sets that this process has not read yet. Versions that an earlier
// process began count too. A set without a document contributes nothing. If Conjur does not
// answer, the result is an error, because the limit would not hold without the answer.
func (l *startLimiter) readOthers(ctx context.Context, now time.Time) error {
	for _, set := range l.sets {
		if l.knows(set.ID) {
			continue
		}
		held, err := set.readNewest(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		none := errors.Is(err, ErrUndeclared) || errors.Is(err, ErrForbidden) || errors.Is(err, errNoSet)
		if err != nil && !none {
			return fmt.Errorf("rotation.perHour: how many versions the set %q began is unknown: %w", set.ID, err)
		}
		if held.Document == nil {
			held.Document = versions.New("")
		}
		l.recordBegun(set.ID, held.Document, now, true)
		held.Wipe()
	}
	return nil
}
