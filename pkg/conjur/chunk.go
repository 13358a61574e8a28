package conjur

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// minRequestLine is the shortest limit that a refusal may lead to.
const minRequestLine = 1000

// chunk is the variables that one request asks for.
type chunk struct {
	ids    []string // sorted
	size   int      // of the ids in the request line
	single bool     // one variable, asked for by its own path
	etag   string   // of the last answer; a hash of values, never shown
	// sick marks a chunk that was refused, or is part of one and has not been
	// asked for since: its requests count against the budget.
	sick bool
	req  *http.Request // made when first needed
}

// without gives the chunk that lacks the ids for which drop is true.
func (ch *chunk) without(size func(string) int, drop func(string) bool) *chunk {
	if !slices.ContainsFunc(ch.ids, drop) {
		return ch
	}
	kept := slices.DeleteFunc(slices.Clone(ch.ids), drop)
	rest := newChunk(kept, size)
	rest.single, rest.sick = ch.single, ch.sick
	return rest
}

func newChunk(ids []string, size func(string) int) *chunk {
	ch := &chunk{ids: ids}
	for _, id := range ids {
		ch.size += size(id)
	}
	return ch
}

// halves splits a chunk of at least two.
func (ch *chunk) halves(size func(string) int) (first, second *chunk) {
	middle := len(ch.ids) / 2
	first, second = newChunk(ch.ids[:middle:middle], size), newChunk(ch.ids[middle:], size)
	first.sick, second.sick = ch.sick, ch.sick
	return first, second
}

// pack fills chunks with ids up to room bytes each. An id that alone is longer
// has a chunk of its own, so that the server says what it thinks of it.
func pack(ids []string, room int, size func(string) int) (chunks []*chunk) {
	var last *chunk
	for _, id := range ids {
		n := size(id)
		if last == nil || last.size+n > room {
			last = &chunk{}
			chunks = append(chunks, last)
		}
		last.ids, last.size = append(last.ids, id), last.size+n
	}
	return chunks
}

func singles(ids []string, size func(string) int) (chunks []*chunk) {
	for _, id := range ids {
		ch := newChunk([]string{id}, size)
		ch.single = true
		chunks = append(chunks, ch)
	}
	return chunks
}

// plan is the chunks that polls ask for. A chunk that stays as it is keeps its
// ETag, so the plan changes as little as it can.
type plan struct {
	chunks []*chunk
	// What the chunks were made from; settled is true while that still holds.
	shared, single []string
	room           int
	settled        bool
}

// update makes the plan cover the shared ids, in chunks of up to room bytes,
// and the single ones.
func (p *plan) update(shared, single []string, room int, size func(string) int) {
	if p.settled && room == p.room && slices.Equal(shared, p.shared) && slices.Equal(single, p.single) {
		return
	}
	p.shared, p.single, p.room = shared, single, room
	missing := make(map[string]bool, len(shared)+len(single)) // :: id → asked for singly
	for _, id := range shared {
		missing[id] = false
	}
	for _, id := range single {
		missing[id] = true
	}
	var kept []*chunk
	for _, ch := range p.chunks {
		// A sick chunk of one stays single until it answers.
		ch = ch.without(size, func(id string) bool {
			single, wanted := missing[id]
			return !wanted || single && !ch.single || !single && ch.single && !ch.sick
		})
		for _, id := range ch.ids {
			delete(missing, id)
		}
		if len(ch.ids) > 0 {
			kept = append(kept, ch)
		}
	}
	var add, addSingle []string
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		if missing[id] {
			addSingle = append(addSingle, id)
		} else {
			add = append(add, id)
		}
	}
	p.chunks = append(merge(kept, room, size), singles(addSingle, size)...)
	p.fill(add, room, size)
}

// replace takes what a poll made of the chunks.
func (p *plan) replace(chunks []*chunk) {
	p.settled = slices.Equal(chunks, p.chunks) && !slices.ContainsFunc(chunks, func(ch *chunk) bool { return ch.sick })
	p.chunks = chunks
}

// fill adds ids to the chunks that have room, then to new ones.
func (p *plan) fill(ids []string, room int, size func(string) int) {
	for i, ch := range p.chunks {
		if ch.single || ch.sick {
			continue
		}
		n, added := 0, 0
		for n < len(ids) && ch.size+added+size(ids[n]) <= room {
			added += size(ids[n])
			n++
		}
		if n > 0 {
			all := slices.Concat(ch.ids, ids[:n])
			slices.Sort(all)
			p.chunks[i] = newChunk(all, size)
			ids = ids[n:]
		}
	}
	p.chunks = append(p.chunks, pack(ids, room, size)...)
}

// merge joins chunks that together take no more than three quarters of the
// room: less than all of it, so that one id that comes and goes does not split
// and join chunks for ever. While a batch is being narrowed it does nothing.
func merge(chunks []*chunk, room int, size func(string) int) []*chunk {
	var joined *chunk
	rest := make([]*chunk, 0, len(chunks))
	for _, ch := range slices.SortedStableFunc(slices.Values(chunks), func(a, b *chunk) int { return a.size - b.size }) {
		switch {
		case ch.single:
			rest = append(rest, ch)
		case ch.sick:
			return chunks
		case joined != nil && joined.size+ch.size <= room/4*3:
			ids := slices.Concat(joined.ids, ch.ids)
			slices.Sort(ids)
			joined = newChunk(ids, size)
		default:
			if joined != nil {
				rest = append(rest, joined)
			}
			joined = ch
		}
	}
	if joined != nil {
		rest = append(rest, joined)
	}
	if len(rest) == len(chunks) {
		return chunks // in the order they had
	}
	return rest
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
