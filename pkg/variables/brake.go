package variables

import (
	"slices"
	"time"
)

// Brake holds removal back when most variables of the identity are gone at
// once, since a policy that was replaced by mistake looks like that. The zero
// Brake has the defaults.
type Brake struct {
	// Disabled switches it off, as a Share of 1 or more does.
	Disabled bool
	// Share is the share of the variables in use that may go at once without
	// it; default 0.5.
	Share float64
	// Least is a number of variables that may always go at once; default 3,
	// negative: 0.
	Least int
	// Hold is for how long removal is held back; default 10 min. What is gone
	// then is asked for once more, and is removed if it still is.
	Hold time.Duration
}

func (b Brake) withDefaults() Brake {
	b.Share = orDefault(b.Share, 0.5)
	b.Least = max(orDefault(b.Least, 3), 0)
	b.Hold = orDefault(b.Hold, 10*time.Minute)
	b.Disabled = b.Disabled || b.Share >= 1
	return b
}

// takes reports whether n of all variables are too many to go at once.
func (b Brake) takes(n, all int) bool {
	return !b.Disabled && n > b.Least && float64(n) > b.Share*float64(all)
}

// hold is a time in which the variables that are marked as held are not called
// gone. It begins quietly, when it is not known how most others are doing, and
// is announced when half of its time is over, or when most are gone, with which it
// begins anew.
type hold struct {
	since, until time.Time
	sure         bool // most are gone
	announced    bool
	idle         bool // nothing was delivered that could be removed
	gone, of     int  // as last counted
}

// tally is how the variables in use are doing, but for those of which it is
// decided that they are gone.
type tally struct {
	all     int
	gone    int // the server called them gone
	unknown int // not found since, either
}

// mayGo decides about a variable whose proof is complete. It is called with the
// lock held.
func (m *memory) mayGo(v *variable, o observation, now time.Time) bool {
	brake, s, h := m.rules.Brake, v.suspicion, m.hold
	switch {
	case brake.Disabled:
		return true
	case !v.cleared.IsZero():
		return o.issued.After(v.cleared)
	case h != nil && h.sure && v.held():
		return false
	}
	t := m.tally(s.began)
	if !brake.takes(t.gone+t.unknown, t.all) {
		if h != nil && !h.sure {
			m.endHold(Unfounded, now)
		}
		return true
	}
	m.keepBack(s.began, t, now)
	return false
}

// tally counts; variables that were not found since the step are unknown. What
// came into use after the start and was never found does not count, since nobody has
// it: whoever names such variables would delay the removals of others.
func (m *memory) tally(since uint64) (t tally) {
	for _, v := range m.vars {
		switch {
		case v.used < m.polls || v.decided() || v.newcomer && v.foundIn == 0:
			continue
		case v.suspicion != nil || v.aside:
			t.gone++
		case v.foundIn <= since:
			t.unknown++
		}
		t.all++
	}
	return t
}

// decided reports whether a variable has been called gone, or nothing keeps it
// from being.
func (v *variable) decided() bool {
	return v.suspicion != nil && v.suspicion.confirmed || !v.cleared.IsZero()
}

func (v *variable) held() bool { return !v.heldAt.IsZero() }

// keepBack holds all that is not known to be there, from now on or, if a hold
// is on, until its end.
func (m *memory) keepBack(since uint64, t tally, now time.Time) {
	for _, v := range m.vars {
		if v.used == m.polls && !v.held() && !v.decided() && (v.suspicion != nil || v.aside || v.foundIn <= since) {
			v.heldAt = now
		}
	}
	if m.hold == nil {
		m.hold = &hold{since: now, until: now.Add(m.rules.Brake.Hold)}
	}
	m.hold.gone, m.hold.of = t.gone, max(t.all, m.hold.of)
}

// confirmHold looks, at the end of a call that knows how all are doing, whether most
// are gone indeed: in the middle of one some may have come back that were not
// asked for yet. It is called with the lock held.
func (m *memory) confirmHold(now time.Time) {
	h, brake := m.hold, m.rules.Brake
	if h == nil {
		return
	}
	switch t := m.tally(0); {
	case !h.sure && brake.takes(t.gone, t.all):
		// Those of which nothing was known may have gone just now.
		h.since, h.until = now, now.Add(brake.Hold)
		h.sure, h.announced = true, true
		m.announce(h, HoldBegan)
	case !h.announced && now.Sub(h.since) >= brake.Hold/2:
		h.announced = true
		m.announce(h, HoldBegan)
	}
}

// review ends the hold when its time is over or nothing that it holds is gone
// any more. It is called with the lock held.
func (m *memory) review(now time.Time) {
	h := m.hold
	if h == nil {
		return
	}
	h.gone = 0
	for _, v := range m.vars {
		if v.heldAndGone() {
			h.gone++
		}
	}
	switch {
	case h.gone == 0:
		m.endHold(Returned, now)
	case now.Before(h.until):
	case h.announced:
		m.endHold(Passed, now)
	default: // nothing was heard for long; who knows what is gone
		m.endHold(Unfounded, now)
	}
}

// endHold lets go what is held. If the hold has passed, what the next look
// finds gone is called so, but for what has gone in its second half: that may be
// another mistake, and is judged anew.
func (m *memory) endHold(why HoldState, now time.Time) {
	h := m.hold
	if h.announced {
		m.announce(h, why)
	}
	m.hold = nil
	for _, v := range m.vars {
		if v.held() && why == Passed && v.heldAt.Sub(h.since) < m.rules.Brake.Hold/2 {
			v.cleared, v.heldFor = now, now.Sub(h.since)
		}
		v.heldAt = time.Time{}
	}
}

// heldAndGone reports whether a variable is held and called gone by the server.
func (v *variable) heldAndGone() bool { return v.held() && (v.suspicion != nil || v.aside) }

// announce keeps an event until a call ends.
func (m *memory) announce(h *hold, state HoldState) {
	var names []string
	for id, v := range m.vars {
		if v.heldAndGone() {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	m.events = append(m.events, HoldEvent{
		State: state, Since: h.since, Until: h.until, Variables: names[:min(len(names), mostNamed)], Gone: h.gone, Of: h.of, hold: h, all: names,
	})
}

// holdEvents returns the events since the last time, at the end of a call; of a
// poll, or of a fetch where there are no polls, if it decides.
func (m *memory) holdEvents(decides bool) (events []HoldEvent) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.review(now)
	if decides || m.polls == 0 {
		m.confirmHold(now)
	}
	events, m.events = m.events, nil
	return events
}
