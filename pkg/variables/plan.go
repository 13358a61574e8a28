package variables

import (
	"maps"
	"slices"
)

// plan is the chunks that polls ask for. A chunk that stays as it is keeps its
// ETag, so the plan changes as little as it can.
type plan struct {
	chunks []*chunk
	// What the chunks were made from; stable is true while that still holds.
	question question
	room     int
	stable   bool
}

// place is where a variable belongs.
type place struct {
	trust  trust
	single bool
}

// update makes the plan cover what is to be asked for each time, in chunks of up
// to room bytes that hold variables of one trust.
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
		// A sick chunk of one stays single until it answers.
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

// promote sets the trust of a chunk to that of its variables when they have all come to
// the same.
func (ch *chunk) promote(places map[string]place) {
	at := places[ch.IDs[0]]
	for _, id := range ch.IDs[1:] {
		if other, wanted := places[id]; wanted && other.trust != at.trust {
			return
		}
	}
	ch.trust = at.trust
}

// replace takes what a poll made of the chunks.
func (p *plan) replace(chunks []*chunk) {
	p.stable = slices.Equal(chunks, p.chunks) && !slices.ContainsFunc(chunks, func(ch *chunk) bool { return ch.sick })
	p.chunks = chunks
}

// fill adds ids to the chunks that have room, then to new ones.
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
		return chunks // in the order they had
	}
	return rest
}
