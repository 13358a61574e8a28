package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// journal remembers, in the status folder, that something was written of which
// the application has not been told: a process that dies in between leaves the
// mark, and the next one tells. Each span from a first write to its
// announcement has a mark of its own, so that ending one span cannot take away
// the mark of the next.
type journal struct {
	dir  string
	life int64 // tells the marks of this process from those of others

	mu     sync.Mutex
	span   int
	open   bool // the span has a mark
	writes int  // begun so far
}

const markPrefix = ".untold-"

func (j *journal) mark(span int) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s%d-%d", markPrefix, j.life, span))
}

// writing notes that a write is about to begin.
func (j *journal) writing() error {
	j.mu.Lock()
	j.writes++
	first := !j.open
	if first {
		j.span++
		j.open = true
	}
	span := j.span
	j.mu.Unlock()
	if !first {
		return nil
	}
	err := os.WriteFile(j.mark(span), nil, 0o600)
	if err != nil { // the next write tries again
		j.mu.Lock()
		j.open = j.open && j.span != span
		j.mu.Unlock()
	}
	return err
}

// telling begins an announcement; the function that it returns ends it. Writes
// that begin in between keep the mark for the next announcement.
func (j *journal) telling() (told func() error) {
	j.mu.Lock()
	writes, span := j.writes, j.span
	j.mu.Unlock()
	return func() error {
		j.mu.Lock()
		done := j.open && j.writes == writes
		if done {
			j.open = false
		}
		j.mu.Unlock()
		if !done {
			return nil
		}
		return remove(j.mark(span))
	}
}

// leftBehind lists the marks of earlier processes.
func (j *journal) leftBehind() ([]string, error) {
	return filepath.Glob(filepath.Join(j.dir, markPrefix+"*"))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
