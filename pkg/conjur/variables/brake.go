package variables

import (
	"slices"
	"time"
)

// Brake delays removals if most variables of the identity disappear at once,
// because a policy replaced by mistake has this effect. The zero Brake has the
// defaults.
type Brake struct {
	// Disabled disables the brake. A Share of 1 or more does the same.
	Disabled bool
	// Share is the share of the variables in use that may disappear at once without
	// the brake; default 0.5.
	Share float64
	// Least is the number of variables that may always disappear at once; default
	// 3, negative means 0.
	Least int
	// Hold is the delay of a removal; default 10 min. Variables that are gone after
	// the delay are requested once more, and removed if they are still gone.
	Hold time.Duration
}

func (b Brake) withDefaults() Brake {
	b.Share = orDefault(b.Share, 0.5)
	b.Least = max(orDefault(b.Least, 3), 0)
	b.Hold = orDefault(b.Hold, 10*time.Minute)
	b.Disabled = b.Disabled || b.Share >= 1
	return b
}

// takes reports whether the brake holds back for a tenant that a variable is gone, and
// whose loss is the reason. That is the tenant's tally, if it lost most of the variables
// that it uses itself. It is the identity's, if most tenants have lost most, and many
// variables are lost even without the tenant that lost most. The variables that another
// tenant names decide nothing, whether they live or not.
func (b Brake) takes(t tallies, tenant string, n extent) (whose tally, held bool) {
	if len(t.tenants) < 2 {
		return t.tally, b.exceeded(t.count(n), t.all)
	}
	if of := t.tenants[tenant]; of != nil && b.exceeded(of.count(n), of.all) {
		return *of, true
	}
	return t.tally, t.mass[n]
}

// isMass reports whether most tenants have lost most, and many variables are lost even
// without the tenant that lost most.
func (b Brake) isMass(t tallies, n extent) bool {
	lost, sum, most := 0, 0, 0
	for _, of := range t.tenants {
		sum, most = sum+of.count(n), max(most, of.count(n))
		if float64(of.count(n)) > b.Share*float64(of.all) {
			lost++
		}
	}
	return !b.Disabled && sum-most > b.Least && float64(lost) > b.Share*float64(len(t.tenants))
}

// takesAny returns for which tenants of a variable the brake holds back that it is gone,
// and whose loss is the reason; nil if for none. A variable without a tenant has the one
// without a name.
func (b Brake) takesAny(t tallies, id string, n extent) (kept Use, whose tally) {
	kept = Use{}
	taken := false
	tenants := t.uses[id]
	if len(tenants) == 0 {
		tenants = Use{"": true}
	}
	for tenant := range tenants {
		of, held := b.takes(t, tenant, n)
		if kept[tenant] = held; held {
			whose, taken = of, true
		}
	}
	if !taken {
		return nil, whose
	}
	return kept, whose
}

// exceeded reports whether n of all variables are too many to go at once.
func (b Brake) exceeded(n, all int) bool {
	return !b.Disabled && n > b.Least && float64(n) > b.Share*float64(all)
}

// hold is a period in which variables that are marked as held do not get the
// verdict Gone. It begins without an event while the state of most other variables
// is unknown. It is announced after half of its time, or when most variables are
// gone. In the latter case it restarts.
type hold struct {
	since, until time.Time
	sure         bool // most variables are gone
	announced    bool
	idle         bool // no delivered value could be removed
	gone, of     int  // at the last count
}

// mayGo decides about a variable with a complete proof. The caller holds the lock.
func (m *memory) mayGo(id string, v *variable, o observation, uses map[string]Use, now time.Time) bool {
	brake, s, h := m.rules.Brake, v.suspicion, m.hold
	switch {
	case brake.Disabled:
		return true
	case !v.cleared.IsZero():
		return o.issued.After(v.cleared)
	case h != nil && h.sure && v.held():
		m.free(id, v)
		return false
	}
	t := m.tally(s.began, uses)
	kept, whose := brake.takesAny(t, id, doubted)
	if kept == nil {
		if h != nil && !h.sure && !m.trips(t, doubted) {
			m.endHold(Unfounded, now)
		}
		return true
	}
	m.keepBack(s.began, t, whose, now)
	v.kept = kept
	m.free(id, v)
	return false
}

// free gives a variable with a complete proof the verdict Gone for the tenants for which
// it is not held back. The caller holds the lock.
func (m *memory) free(id string, v *variable) {
	before := len(v.freed)
	for tenant, kept := range v.kept {
		if kept || v.freed[tenant] {
			continue
		}
		if v.freed == nil {
			v.freed = map[string]bool{}
		}
		v.freed[tenant], v.changed = true, true
	}
	if before == 0 && len(v.freed) > 0 {
		m.proofs = append(m.proofs, v.suspicion.proof(id, v))
	}
}

// decided reports whether a variable has the verdict Gone, or nothing prevents that
// verdict.
func (v *variable) decided() bool {
	return v.suspicion != nil && v.suspicion.confirmed || !v.cleared.IsZero()
}

func (v *variable) held() bool { return !v.heldAt.IsZero() }

// keepBack holds all variables that the brake takes, from now on. If a hold is
// active, it lasts until that hold's end.
func (m *memory) keepBack(since uint64, t tallies, whose tally, now time.Time) {
	for id, v := range m.vars {
		unsure := v.used == m.polls && !v.held() && !v.decided() && (v.suspicion != nil || v.aside || v.foundIn <= since)
		if !unsure {
			continue
		}
		if kept, _ := m.rules.Brake.takesAny(t, id, doubted); kept != nil {
			v.heldAt, v.kept = now, kept
		}
	}
	if m.hold == nil {
		m.hold = &hold{since: now, until: now.Add(m.rules.Brake.Hold)}
	}
	m.hold.gone, m.hold.of = whose.gone, max(whose.all, m.hold.of)
}

// trips reports whether the brake still takes anything that is held.
func (m *memory) trips(t tallies, n extent) bool {
	for id, v := range m.vars {
		if !v.held() {
			continue
		}
		if kept, _ := m.rules.Brake.takesAny(t, id, n); kept != nil {
			return true
		}
	}
	return false
}

// confirmHold checks whether most variables are really gone. It runs at the end of
// a call that knows all states. In the middle of a call, variables that were not
// requested yet may have come back. The caller holds the lock.
func (m *memory) confirmHold(uses map[string]Use, now time.Time) {
	h, brake := m.hold, m.rules.Brake
	if h == nil {
		return
	}
	if !h.sure {
		if t := m.tally(0, uses); m.trips(t, gone) {
			m.release(t)
			// Unknown variables may have disappeared just now.
			h.since, h.until = now, now.Add(brake.Hold)
			h.sure, h.announced = true, true
			m.announce(h, HoldBegan)
			return
		}
	}
	if !h.announced && now.Sub(h.since) >= brake.Hold/2 {
		h.announced = true
		m.announce(h, HoldBegan)
	}
}

// release stops holding variables that the brake no longer takes. They were held
// because the state of other variables was unknown. Each is judged anew if it is gone.
// The caller holds the lock.
func (m *memory) release(t tallies) {
	for id, v := range m.vars {
		if !v.held() {
			continue
		}
		if v.kept, _ = m.rules.Brake.takesAny(t, id, gone); v.kept == nil {
			v.heldAt = time.Time{}
		}
	}
}

// review ends the hold after its time, or when no held variable is gone any more.
// The caller holds the lock.
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
	default: // no answers for long: the state is unknown
		m.endHold(Unfounded, now)
	}
}

// endHold releases the held variables. If the hold has passed, variables that the
// next call finds gone get the verdict Gone. Variables that disappeared in the
// second half of the hold are an exception: they may be another mistake, and are
// judged anew.
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
		v.heldAt, v.kept = time.Time{}, nil
	}
}

// heldAndGone reports whether a variable is held and the server calls it gone.
func (v *variable) heldAndGone() bool { return v.held() && (v.suspicion != nil || v.aside) }

// announce stores an event until the end of a call.
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

// holdEvents returns the events since the last time, at the end of a call. decides
// is true for a poll, or for a fetch if there are no polls.
func (m *memory) holdEvents(decides bool) (events []HoldEvent) {
	now, uses := time.Now(), m.usersWhenDue(func() bool { return m.hold != nil })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.review(now)
	if decides || m.polls == 0 {
		m.confirmHold(uses, now)
	}
	events, m.events = m.events, nil
	return events
}

// HoldState is the kind of a hold event.
type HoldState string

const (
	// HoldBegan: most variables are gone at once, or have been unknown for long.
	// Variables that are gone do not get the verdict Gone for a time. If the reason
	// changes from unknown to gone, the hold restarts.
	HoldBegan HoldState = "began"
	// Passed: the time has passed. Variables that the next call finds gone get the
	// verdict Gone.
	Passed HoldState = "passed"
	// Returned: no held variable is gone any more, or none is in use.
	Returned HoldState = "returned"
	// Unfounded: most variables were unknown, and have now been found.
	Unfounded HoldState = "unfounded"
)

// HoldEvent is the begin or end of a hold of the Brake.
type HoldEvent struct {
	State HoldState
	Since time.Time
	Until time.Time // scheduled end, even if the hold ended earlier
	// Variables lists some of the variables that are held and gone, in ascending
	// order, at most ten. Gone is their total number, and Of is the number in use.
	Variables []string
	Gone, Of  int

	hold *hold
	all  []string // Variables is a part of it
}

// mostNamed bounds the variables that an event names.
const mostNamed = 10

// Doubted returns the variables that the server calls gone without a complete
// proof, in ascending order, and the active hold. The zero HoldEvent means that no
// hold is active or that it was not announced.
func (c *Client) Doubted() (ids []string, hold HoldEvent) {
	m := c.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, v := range m.vars {
		if v.suspicion != nil && !v.suspicion.confirmed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if h := m.hold; h != nil && h.announced && !h.idle {
		hold = HoldEvent{State: HoldBegan, Since: h.since, Until: h.until, Gone: h.gone, Of: h.of}
	}
	return ids, hold
}

// postpone puts events back, before later ones.
func (m *memory) postpone(events []HoldEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(slices.Clone(events), m.events...)
}

func (m *memory) setIdle(h *hold, idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.idle = idle
}

func (m *memory) isIdle(h *hold) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return h.idle
}
