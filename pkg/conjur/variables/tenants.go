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

// takes reports whether the brake holds back for a tenant that a variable is gone, and
// whose loss is the reason. That is the tenant's tally, if it lost most of the variables
// that it uses itself. It is the identity's, if most tenants have lost most, and others
// than the one that lost most have lost many. What another tenant names decides nothing:
// neither living variables nor dead ones.
func (b Brake) takes(t tallies, tenant string, n extent) (whose tally, held bool) {
	if len(t.tenants) < 2 {
		return t.tally, b.exceeded(t.count(n), t.all)
	}
	if of := t.tenants[tenant]; of != nil && b.exceeded(of.count(n), of.all) {
		return *of, true
	}
	return t.tally, t.mass[n]
}

// isMass reports whether most tenants have lost most, and others than the one that lost
// most have lost many.
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
