package variables

import (
	"bytes"
	"context"
	"slices"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

// asidesPerFetch bounds the variables that seem to be gone and that a fetch requests
// all the same, regardless of its budget. For the others it uses the memory.
const asidesPerFetch = 32

// Fetch reads the variables' values. It returns an answer for every id, and never
// fails as a whole. Calls that arrive during another are merged into the next
// batch. One batch carries all ids of a call, unless they exceed its size or only
// some of them were found before.
//
// earlier may be nil, or answers of a Fetch that the caller still owns. Conjur does not
// send the values of a batch again that have not changed since. They are copied from
// there.
func (c *Client) Fetch(ctx context.Context, ids []string, earlier map[string]Answer) map[string]Answer {
	if len(ids) == 0 {
		return map[string]Answer{}
	}
	known := map[string]*source{}
	for _, id := range ids {
		if s := earlier[id].source; s != nil && s.etag != "" {
			known[s.IDs[0]] = s
		}
	}
	answers := c.flights.fetch(ctx, ids, known)
	for id, a := range answers {
		if a.unchanged {
			a.Value = secret.New(bytes.Clone(earlier[id].Value.Bytes()))
			answers[id] = a
		}
	}
	return answers
}

// load reads the variables of one flight. The ids are distinct. known are the sources of
// answers of an earlier flight, by their first id.
func (c *Client) load(ctx context.Context, ids []string, known map[string]*source) map[string]Answer {
	valid, _ := distinct(ids)
	l := &load{call: c.begin(ctx, valid), answers: make(map[string]Answer, len(ids)), known: known}
	q := c.memory.sort(valid)
	defer l.end(false)
	l.keepHalf(len(q.aside) > 0, func() { l.askTogether(q) })
	open, gone := c.memory.pending(q.aside)
	aside := slices.Concat(open, gone)
	l.askOthers(ids, aside[:min(len(aside), asidesPerFetch)])
	l.askAsides(slices.Concat(aside, l.unanswered(q.each())))
	for _, id := range ids {
		if !l.isAnswered(id) {
			l.answers[id] = l.whyNot(id)
		}
	}
	l.memory.tell(l.answers)
	return l.answers
}

// askAsides requests variables individually, but only some of those about which the
// memory has an answer, and none whose answer is fresh.
func (l *load) askAsides(ids []string) {
	spare := asidesPerFetch
	for _, id := range ids {
		if l.memory.isFresh(id) {
			continue
		}
		if l.memory.hasAnswer(id) {
			if spare == 0 {
				continue
			}
			spare--
		}
		if len(l.asides([]string{id}, 0, l)) == 0 {
			return
		}
	}
}

// askTogether requests the variables that batches can carry, and those that are
// always requested individually.
func (l *load) askTogether(q question) {
	chunks := q.chunks(l.room(), l.encodedLen)
	for _, ch := range chunks {
		if s := l.known[ch.IDs[0]]; s != nil && !ch.single && slices.Equal(s.IDs, ch.IDs) {
			ch.source = *s // so that the request is conditional
		}
	}
	for len(chunks) > 0 {
		next, looked := chunks[0], l.listRead
		chunks = chunks[1:]
		l.bisect(next, l)
		if l.listRead && !looked { // the list now says what probably exists
			rest := l.memory.sort(idsOf(chunks))
			chunks = rest.chunks(l.room(), l.encodedLen)
		}
	}
}

// load is one flight of Fetch, and the handler of its answers.
type load struct {
	*call
	answers map[string]Answer
	known   map[string]*source // of an earlier flight, by their first id
	request int                // number of the last request with values
}

func (l *load) isAnswered(id string) bool {
	_, ok := l.answers[id]
	return ok
}

// unanswered returns the variables that batches did not answer for and that need an
// individual request.
func (l *load) unanswered(ids []string) (open []string) {
	for _, id := range ids {
		if !l.isAnswered(id) && l.memory.isAside(id) {
			open = append(open, id)
		}
	}
	return open
}

func (l *load) whyNot(id string) Answer {
	if err := conjur.CheckID(id); err != nil {
		return unknown(err)
	}
	if l.stop != nil {
		return unknown(l.stop)
	}
	return l.memory.recall(id)
}

func (l *load) values(ch *chunk, r conjur.Values) {
	l.request++
	if r.Form == conjur.Unchanged {
		for i, id := range ch.IDs {
			l.found(id, Answer{source: &ch.source, unchanged: true}, ch.prints[i])
		}
		return
	}
	ch.prints = make([]fingerprint.Fingerprint, len(ch.IDs))
	for i, id := range ch.IDs {
		v, ok := r.Found[id]
		if !ok {
			l.answers[id] = unknown(r.Bad[id])
			continue
		}
		ch.prints[i] = l.memory.fingerprint(v)
		l.found(id, Answer{Value: v, source: &ch.source}, ch.prints[i])
	}
}

func (l *load) single(id string, r reading) {
	if r.Verdict == Found {
		l.request++
		l.found(id, Answer{Value: r.Value}, l.memory.fingerprint(r.Value))
		return
	}
	l.answers[id] = r.Answer
}

func (l *load) found(id string, a Answer, p fingerprint.Fingerprint) {
	if err := l.memory.fetched(id, p, l.step); err != nil {
		a.Value.Wipe()
		l.answers[id] = unknown(err)
		return
	}
	a.Verdict, a.Request = Found, l.request
	l.answers[id] = a
}

func (l *load) unknown(ids []string, err error) {
	for _, id := range ids {
		l.answers[id] = unknown(err)
	}
}
