package variables

import (
	"slices"
	"sync"

	"github.com/secretsync/syncer/pkg/conjur"
)

const (
	// maxRequestLine is the longest request line at first: the bare server takes
	// 10,240 bytes, proxies less.
	maxRequestLine = 8000
	// minRequestLine is the shortest limit that a refusal may lead to.
	minRequestLine = 1000
)

// chunk is the variables that one request asks for.
type chunk struct {
	conjur.Batch        // of ids that are sorted
	size         int    // of the ids in the request line
	single       bool   // one variable, asked for by its own path
	trust        trust  // that of its variables
	etag         string // of the last answer; a hash of values, never shown
	// sick marks a chunk that was refused, or is part of one and has not been
	// asked for since: its requests count against the budget.
	sick bool
}

// without returns the chunk that lacks the ids for which drop is true.
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

// halves splits a chunk of at least two.
func (ch *chunk) halves(size func(string) int) (first, second *chunk) {
	middle := len(ch.IDs) / 2
	first, second = newChunk(ch.IDs[:middle:middle], size), newChunk(ch.IDs[middle:], size)
	first.sick, second.sick = ch.sick, ch.sick
	first.trust, second.trust = ch.trust, ch.trust
	return first, second
}

// pack fills chunks with ids up to room bytes each. An id that alone is longer
// has a chunk of its own, so that the server says what it thinks of it.
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

// chunks makes chunks of all that is asked for each time, the most trusted
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

// lineLimit is the longest request line that gets through, as far as known.
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

// refused halves the limit after a line of n bytes was called too long. It is
// false when the line was so short that length cannot be the reason.
func (l *lineLimit) refused(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n <= minRequestLine {
		return false
	}
	l.now = min(l.now, max(n/2, minRequestLine))
	return true
}

// restore takes back what refusals taught that had another reason.
func (l *lineLimit) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.configured
}
