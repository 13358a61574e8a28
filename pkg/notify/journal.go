package notify

import (
	"crypto/rand"
	"os"
	"strings"
	"sync"

	"github.com/secretsync/syncer/internal/safefile"
)

// journal records in the status folder that the application has not been notified of a
// write. If the process dies in between, the mark stays and the next process notifies.
// Each span from a first write to its announcement has a separate mark. The end of one
// span therefore cannot remove the mark of the next.
type journal struct {
	folder folder

	mu     sync.Mutex
	mark   string // of the span; empty: no mark
	writes int    // started so far
}

const markPrefix = ".untold-"

// writing records that a write is about to start.
func (j *journal) writing() error {
	j.mu.Lock()
	j.writes++
	first := j.mark == ""
	if first {
		j.mark = markPrefix + rand.Text()
	}
	mark := j.mark
	j.mu.Unlock()
	if !first {
		return nil
	}
	err := j.folder.in(func(root *os.Root) error { return note{mode: 0o600}.create(root, mark) })
	if err != nil { // the next write retries
		j.mu.Lock()
		if j.mark == mark {
			j.mark = ""
		}
		j.mu.Unlock()
	}
	return err
}

// isMark reports whether a name is the name of a mark.
func isMark(name string) bool {
	random, ok := strings.CutPrefix(name, markPrefix)
	return ok && safefile.IsRandomText(random)
}

// announcing starts an announcement; the returned function ends it. Writes that start in
// between keep the mark for the next announcement.
func (j *journal) announcing() (announced func() error) {
	j.mu.Lock()
	writes, mark := j.writes, j.mark
	j.mu.Unlock()
	return func() error {
		j.mu.Lock()
		done := mark != "" && j.mark == mark && j.writes == writes
		if done {
			j.mark = ""
		}
		j.mu.Unlock()
		if !done {
			return nil
		}
		return j.folder.remove(mark)
	}
}

// leftBehind lists the marks of earlier processes.
func (j *journal) leftBehind() ([]string, error) { return j.folder.names(isMark) }
