package variables

import (
	"maps"
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
	source             // with sorted ids
	size   int         // of the ids in the request line
	single bool        // one variable, requested by its path
	trust  trust       // trust of its variables
	vars   []*variable // see unmodified
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
	ch := &chunk{source: source{Batch: conjur.Batch{IDs: ids}}}
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

// plan holds the chunks that polls request. An unchanged chunk keeps its ETag, so
// the plan changes as little as possible.
type plan struct {
	chunks []*chunk
	// The input of the chunks. stable is true while the input is unchanged.
	question question
	room     int
	stable   bool
}

// place says in which chunks a variable belongs.
type place struct {
	trust  trust
	single bool
}

// update makes the plan cover everything to request each time. Each chunk has at
// most room bytes and variables of one trust.
func (p *plan) update(q question, room int, size func(string) int) {
	if p.stable && room == p.room && p.question.equal(q) {
		return
	}
	p.question, p.room = q, room
	missing := map[string]place{}
	for t := range q.shared {
		for _, id := range q.shared[t] {
			missing[id] = place{trust(t), false}
		}
		for _, id := range q.single[t] {
			missing[id] = place{trust(t), true}
		}
	}
	var kept [trusts][]*chunk
	for _, ch := range p.chunks {
		ch.promote(missing)
		// A sick chunk with one variable stays single until it answers.
		ch = ch.without(size, func(id string) bool {
			at, wanted := missing[id]
			return !wanted || at.trust != ch.trust || at.single && !ch.single || !at.single && ch.single && !ch.sick
		})
		for _, id := range ch.IDs {
			delete(missing, id)
		}
		if len(ch.IDs) > 0 {
			kept[ch.trust] = append(kept[ch.trust], ch)
		}
	}
	var add question
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		add.put(id, missing[id])
	}
	p.chunks = nil
	for t := range kept {
		chunks := append(merge(kept[t], room, size), singles(add.single[t], trust(t), size)...)
		p.chunks = append(p.chunks, fill(chunks, add.shared[t], trust(t), room, size)...)
	}
}

// promote updates the trust of a chunk once all its variables have the same trust.
func (ch *chunk) promote(places map[string]place) {
	at := places[ch.IDs[0]]
	for _, id := range ch.IDs[1:] {
		if other, wanted := places[id]; wanted && other.trust != at.trust {
			return
		}
	}
	ch.trust = at.trust
}

// replace stores the chunks that resulted from a poll.
func (p *plan) replace(chunks []*chunk) {
	p.stable = slices.Equal(chunks, p.chunks) && !slices.ContainsFunc(chunks, func(ch *chunk) bool { return ch.sick })
	p.chunks = chunks
}

// fill adds ids to chunks with room, then to new ones.
func fill(chunks []*chunk, ids []string, t trust, room int, size func(string) int) []*chunk {
	for i, ch := range chunks {
		if ch.single || ch.sick {
			continue
		}
		n, added := 0, 0
		for n < len(ids) && ch.size+added+size(ids[n]) <= room {
			added += size(ids[n])
			n++
		}
		if n > 0 {
			all := slices.Concat(ch.IDs, ids[:n])
			slices.Sort(all)
			chunks[i] = newChunk(all, size)
			chunks[i].trust = t
			ids = ids[n:]
		}
	}
	return append(chunks, pack(ids, t, room, size)...)
}

// merge joins chunks that together take at most three quarters of the room. The
// margin avoids repeated splitting and joining when one id comes and goes. merge
// does nothing while a batch is being narrowed.
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
			ids := slices.Concat(joined.IDs, ch.IDs)
			slices.Sort(ids)
			joined = newChunk(ids, size)
			joined.trust = ch.trust
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
		return chunks // in their previous order
	}
	return rest
}
