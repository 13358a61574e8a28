package variables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
)

// gonePerPoll is the number of variables that are gone and that a poll requests
// again, because they may come back. While other variables have no conclusion, the
// poll reserves room for half of that number.
const gonePerPoll = 8

// Changed reports which of the variables changed since their first fetch or the
// last Changed, and which of them are gone or have come back. It requests
// conditionally, so that no value is transferred while nothing changes.
//
// ids must contain all variables in use, because Changed forgets others. An error
// names the variables that could not be checked. The returned names are correct
// even then. A variable that is gone is not an error. Calls do not overlap: a
// second call waits for the first.
func (c *Client) Changed(ctx context.Context, ids []string) ([]string, error) {
	select {
	case c.polling <- struct{}{}:
		defer func() { <-c.polling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var invalid []error
	if known := c.memory.idsInUse(); slices.Equal(ids, known) {
		ids = known
	} else {
		ids, invalid = distinct(ids)
	}
	unsteady := c.memory.poll(ids)
	q := c.memory.sortInUse()
	p := &poll{call: c.begin(conjur.InPoll(ctx), ids)}
	if len(q.aside) > p.budget { // the list shows which ones to ask about first
		p.refreshList(nil)
		q = c.memory.sortInUse()
	}
	if unsteady {
		p.reconnect()
	}
	p.errs = append(p.errs, invalid...)
	defer p.end(true)
	c.plan.update(q, p.room(), c.encodedLen)

	// Request the chunks before the variables that are set aside: they show that
	// not everything is gone.
	p.keepHalf(len(q.aside) > 0, func() {
		var kept []*chunk
		for _, ch := range inOrder(c.plan.chunks) {
			kept = append(kept, p.bisect(ch, p)...)
		}
		c.plan.replace(kept)
	})
	aside := c.memory.sortInUse().aside
	aside = slices.DeleteFunc(aside, func(id string) bool { return p.seen[id] })
	open, gone := c.memory.pending(aside)
	p.asides(open, min(len(gone), gonePerPoll/2), p)
	p.asides(gone[:min(len(gone), gonePerPoll)], 0, p)
	p.changed = append(p.changed, c.memory.changedAside()...)
	slices.Sort(p.changed)
	return slices.Compact(p.changed), p.err()
}

// inOrder sorts chunks by trust, and within a trust puts sound chunks first. They
// cover most variables, and cost nothing of the budget. Among the sick chunks the
// small ones come first, because their narrowing is almost complete.
func inOrder(chunks []*chunk) []*chunk {
	rank := func(ch *chunk) int {
		if ch.sick {
			return len(ch.IDs)
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(chunks), func(a, b *chunk) int {
		return cmp.Or(cmp.Compare(a.trust, b.trust), cmp.Compare(rank(a), rank(b)))
	})
}

// distinct sorts ids, removes duplicates, and separates ids that cannot be
// requested.
func distinct(ids []string) (valid []string, invalid []error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	valid = sorted[:0]
	for _, id := range sorted {
		if err := conjur.CheckID(id); err != nil {
			invalid = append(invalid, err)
			continue
		}
		valid = append(valid, id)
	}
	return valid, invalid
}

// poll is one Changed in progress, and the handler of its answers.
type poll struct {
	*call
	changed []string
	errs    []error
	left    []left
	seen    map[string]bool // requested individually
}

// left holds the variables that one reason prevented from being checked.
type left struct {
	ids []string
	err error
}

func (p *poll) values(ch *chunk, r conjur.Values) {
	if r.Form == conjur.Unchanged {
		p.changed = append(p.changed, p.memory.unmodified(ch, p.step)...)
		return
	}
	for _, id := range ch.IDs {
		var changed bool
		v, ok := r.Found[id]
		switch {
		case ok:
			changed = p.memory.polled(id, v, p.step)
			v.Wipe()
		default:
			p.unknown([]string{id}, r.Bad[id])
		}
		if changed {
			p.changed = append(p.changed, id)
		}
	}
}

func (p *poll) single(id string, r reading) {
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[id] = true
	changed := false
	var suspect *SuspectError
	switch {
	case r.same:
		changed = len(p.memory.unmodified(newChunk([]string{id}, p.encodedLen), p.step)) > 0
	case r.Verdict == Found:
		changed = p.memory.polled(id, r.Value, p.step)
		r.Value.Wipe()
	case r.Verdict == Unknown && !errors.As(r.Err, &suspect):
		p.unknown([]string{id}, r.Err)
	}
	if changed {
		p.changed = append(p.changed, id)
	}
}

func (p *poll) unknown(ids []string, err error) {
	for i := range p.left {
		if errors.Is(p.left[i].err, err) {
			p.left[i].ids = append(p.left[i].ids, ids...)
			return
		}
	}
	p.left = append(p.left, left{slices.Clone(ids), err})
}

func (p *poll) err() error {
	if gone, ok := errors.AsType[*conjur.IdentityError](p.stop); ok {
		return gone // the same for every variable
	}
	for _, l := range p.left {
		p.errs = append(p.errs, fmt.Errorf("%d not checked, from variable %q on: %w", len(l.ids), l.ids[0], l.err))
	}
	return errors.Join(p.errs...)
}
