package variables

import (
	"maps"
	"slices"
)

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
