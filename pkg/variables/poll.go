package variables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
)

// gonePerPoll is how many of the variables that are gone a poll looks after:
// they may come back. It keeps room for half of them while there are others of
// which it is still to be found out.
const gonePerPoll = 8

// Changed asks which of the variables changed since they were first fetched,
// or since the last Changed, and which of them are gone or have come back. It
// asks conditionally, so that no value travels while nothing changes.
//
// ids is all variables in use: what is remembered of others is forgotten. An
// error means that some could not be checked, and says which; the names that
// are returned are right all the same. A variable that is gone is no error.
// Calls do not overlap: a second one waits for the first.
func (c *Client) Changed(ctx context.Context, ids []string) ([]string, error) {
	select {
	case c.polling <- struct{}{}:
		defer func() { <-c.polling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ids, invalid := distinct(ids)
	unsteady := c.memory.poll(ids)
	q := c.memory.sort(ids)
	p := &poll{call: c.begin(ctx, ids)}
	if unsteady {
		p.reconnect()
	}
	p.errs = append(p.errs, invalid...)
	defer p.end(true)
	c.plan.update(q, p.room(), c.encodedLen)

	// First what is well, by which it is known that not all is gone.
	p.keepHalf(len(q.aside) > 0, func() {
		var kept []*chunk
		for _, ch := range inOrder(c.plan.chunks) {
			kept = append(kept, p.narrow(ch, p)...)
		}
		c.plan.replace(kept)
	})
	aside := c.memory.sort(ids).aside
	if len(aside) > c.memory.budget() {
		p.look(nil)
	}
	aside = slices.DeleteFunc(aside, func(id string) bool { return p.seen[id] })
	open, gone := c.memory.pending(aside)
	p.asides(open, min(len(gone), gonePerPoll/2), p)
	p.asides(gone[:min(len(gone), gonePerPoll)], 0, p)
	p.changed = append(p.changed, c.memory.changedAside(ids)...)
	slices.Sort(p.changed)
	return slices.Compact(p.changed), p.err()
}

// inOrder puts the most trusted chunks first, and of each trust the sound ones:
// they are what most depends on, and cost nothing of the budget. Among the sick
// the small ones come first, whose narrowing is nearly done.
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

// distinct sorts ids, drops repeated ones, and takes out those that cannot be
// asked for.
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

// poll is one Changed under way, and the handler of its answers.
type poll struct {
	*call
	changed []string
	errs    []error
	left    []left
	seen    map[string]bool // asked for singly
}

// left is the variables that one reason kept from being checked.
type left struct {
	ids []string
	err error
}

func (p *poll) values(ch *chunk, r conjur.Values) {
	for _, id := range ch.IDs {
		var changed bool
		v, ok := r.Found[id]
		switch {
		case r.Form == conjur.Unchanged:
			changed = p.memory.unmodified(id, p.step)
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
		changed = p.memory.unmodified(id, p.step)
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

func (*poll) perVariable([]string) bool { return false } // it has no conditional form

func (p *poll) unknown(ids []string, err error) {
	for i := range p.left {
		if p.left[i].err == err {
			p.left[i].ids = append(p.left[i].ids, ids...)
			return
		}
	}
	p.left = append(p.left, left{slices.Clone(ids), err})
}

func (p *poll) err() error {
	if gone, ok := errors.AsType[*conjur.IdentityError](p.stop); ok {
		return gone // whatever variable it was asked about
	}
	for _, l := range p.left {
		p.errs = append(p.errs, fmt.Errorf("%d not checked, from variable %q on: %w", len(l.ids), l.ids[0], l.err))
	}
	return errors.Join(p.errs...)
}
