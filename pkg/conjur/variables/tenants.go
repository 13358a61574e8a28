package variables

// Use says which tenants use a variable. A tenant maps to whether a target of it that has
// the variable may hold something. Without that, a variable that was never found was never
// delivered to the tenant either.
type Use map[string]bool

// tally is how some variables in use are doing, but for those of which it is decided
// that they are gone.
type tally struct {
	all     int
	gone    int // the server called them gone
	unknown int // not found since, either
}

// extent says which variables of a tally count as lost.
type extent int

const (
	gone    extent = iota // those that are known not to be there
	doubted               // those that are not known to be there
)

func (t tally) count(n extent) int {
	if n == gone {
		return t.gone
	}
	return t.gone + t.unknown
}

// tallies are those of an identity, and of each tenant that it serves.
type tallies struct {
	tally
	tenants map[string]*tally
	uses    map[string]Use // by variable; nil: nobody says
	mass    [2]bool        // by extent: most tenants have lost most
}

// tally counts; variables that were not found since the step are unknown. A variable
// that was never found does not count if no target can have it. It came into use later,
// or no target of the tenant holds anything. Whoever names such variables would delay the
// removals of others. It is called with the lock held.
func (m *memory) tally(since uint64, uses map[string]Use) tallies {
	t := tallies{tenants: map[string]*tally{}, uses: uses}
	for id, v := range m.vars {
		if v.used < m.polls || v.decided() || v.foundIn == 0 && v.newcomer {
			continue
		}
		counts := uses == nil || v.foundIn > 0
		for tenant, delivered := range uses[id] {
			counts = counts || delivered
			if v.foundIn == 0 && !delivered || v.freed[tenant] {
				continue
			}
			if t.tenants[tenant] == nil {
				t.tenants[tenant] = &tally{}
			}
			t.tenants[tenant].add(v, since)
		}
		if counts {
			t.add(v, since)
		}
	}
	for n := range t.mass {
		t.mass[n] = m.rules.Brake.isMass(t, extent(n))
	}
	return t
}

func (t *tally) add(v *variable, since uint64) {
	switch {
	case v.suspicion != nil || v.aside:
		t.gone++
	case v.foundIn <= since:
		t.unknown++
	}
	t.all++
}
