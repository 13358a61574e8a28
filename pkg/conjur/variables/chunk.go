package variables

import (
	"slices"
	"sync"

	"github.com/secretsync/syncer/pkg/conjur"
)

const (
	// maxRequestLine is the initial limit of a request line. The server without a
	// proxy accepts 10,240 bytes. Proxies accept less.
	maxRequestLine = 8000
	// minRequestLine is the lowest limit after refusals.
	minRequestLine = 1000
)

// chunk holds the variables of one request.
type chunk struct {
	conjur.Batch        // with sorted ids
	size         int    // of the ids in the request line
	single       bool   // one variable, requested by its path
	trust        trust  // trust of its variables
	etag         string // of the last answer; a hash of values, never shown
	// sick marks a chunk that was refused, or a part of a refused chunk that was
	// not requested since. The budget pays for its requests.
	sick bool
}

// without returns the chunk without the ids for which drop returns true.
func (ch *chunk) without(size func(string) int, drop func(string) bool) *chunk {
	if !slices.ContainsFunc(ch.IDs, drop) {
		return ch
	}
	kept := slices.DeleteFunc(slices.Clone(ch.IDs), drop)
	rest := newChunk(kept, size)
	rest.single, rest.trust, rest.sick = ch.single, ch.trust, ch.sick
	return rest
}

func newChunk(ids []string, size func(string) int) *chunk {
	ch := &chunk{Batch: conjur.Batch{IDs: ids}}
	for _, id := range ids {
		ch.size += size(id)
	}
	return ch
}

// halves splits a chunk with at least two variables.
func (ch *chunk) halves(size func(string) int) (first, second *chunk) {
	middle := len(ch.IDs) / 2
	first, second = newChunk(ch.IDs[:middle:middle], size), newChunk(ch.IDs[middle:], size)
	first.sick, second.sick = ch.sick, ch.sick
	first.trust, second.trust = ch.trust, ch.trust
	return first, second
}

// pack fills chunks with ids, up to room bytes each. A longer id gets a separate
// chunk, so that the server judges it.
func pack(ids []string, t trust, room int, size func(string) int) (chunks []*chunk) {
	var last *chunk
	for _, id := range ids {
		n := size(id)
		if last == nil || last.size+n > room {
			last = &chunk{trust: t}
			chunks = append(chunks, last)
		}
		last.IDs, last.size = append(last.IDs, id), last.size+n
	}
	return chunks
}

func singles(ids []string, t trust, size func(string) int) (chunks []*chunk) {
	for _, id := range ids {
		ch := newChunk([]string{id}, size)
		ch.single, ch.trust = true, t
		chunks = append(chunks, ch)
	}
	return chunks
}

// chunks returns chunks of all variables to request each time, the most trusted
// first.
func (q *question) chunks(room int, size func(string) int) (chunks []*chunk) {
	for t := range q.shared {
		chunks = append(chunks, pack(q.shared[t], trust(t), room, size)...)
		chunks = append(chunks, singles(q.single[t], trust(t), size)...)
	}
	return chunks
}

// idsOf lists the variables of chunks.
func idsOf(chunks []*chunk) (ids []string) {
	for _, ch := range chunks {
		ids = append(ids, ch.IDs...)
	}
	slices.Sort(ids)
	return ids
}

// lineLimit is the known limit of a request line.
type lineLimit struct {
	configured int

	mu  sync.Mutex
	now int
}

func newLineLimit(n int) *lineLimit { return &lineLimit{configured: n, now: n} }

func (l *lineLimit) get() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// refused halves the limit after a line of n bytes was refused as too long. It
// returns false if the line is so short that its length cannot be the reason.
func (l *lineLimit) refused(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n <= minRequestLine {
		return false
	}
	l.now = min(l.now, max(n/2, minRequestLine))
	return true
}

// restore undoes reductions that turned out to have another reason.
func (l *lineLimit) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.configured
}
