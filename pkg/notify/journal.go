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

	mu   sync.Mutex
	span *span           // nil: no mark
	own  map[string]bool // marks of this process that may exist
}

// span is the writes that share a mark.
type span struct {
	mark         string
	made         chan struct{} // closed when the mark exists, or err is set
	err          error
	begun, ended int // writes
}

const markPrefix = ".untold-"

// writing records that a write is about to start. It returns after the mark exists, even
// if another write creates it. Call wrote when the write has ended, also after an error.
func (j *journal) writing() (wrote func(), err error) {
	j.mu.Lock()
	s, first := j.span, j.span == nil
	if first {
		s = &span{mark: markPrefix + rand.Text(), made: make(chan struct{})}
		if j.own == nil {
			j.own = map[string]bool{}
		}
		j.span, j.own[s.mark] = s, true
	}
	s.begun++
	j.mu.Unlock()
	if first {
		j.create(s)
	}
	<-s.made
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		s.ended++
	}, s.err
}

// create creates the mark of a span. If it fails, the next write tries with another mark.
func (j *journal) create(s *span) {
	defer close(s.made)
	s.err = j.folder.in(func(root *os.Root) error { return note{mode: 0o600}.create(root, s.mark) })
	if s.err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.span = nil
		delete(j.own, s.mark)
	}
}

// isMark reports whether a name is the name of a mark.
func isMark(name string) bool {
	random, ok := strings.CutPrefix(name, markPrefix)
	return ok && safefile.IsRandomText(random)
}

// announcing starts an announcement; the returned function ends it. The announcement is
// that of the writes that have ended. The mark stays if another write shares it: one in
// progress, or one that starts before the end of the announcement.
func (j *journal) announcing() (announced func() error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.span
	if s == nil || s.ended < s.begun {
		return func() error { return nil }
	}
	begun := s.begun
	return func() error {
		j.mu.Lock()
		done := j.span == s && s.begun == begun
		if done {
			j.span = nil
		}
		j.mu.Unlock()
		if !done {
			return nil
		}
		return j.remove(s.mark)
	}
}

func (j *journal) remove(mark string) error {
	if err := j.folder.remove(mark); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.own, mark)
	return nil
}

// leftBehind lists the marks of earlier processes.
func (j *journal) leftBehind() ([]string, error) {
	return j.folder.names(func(name string) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return isMark(name) && !j.own[name]
	})
}
