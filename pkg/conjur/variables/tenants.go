package variables

// Use is who uses a variable.
type Use struct {
	Tenants []string // each once
	// Delivered: a target that has the variable may hold something. Without that, one
	// that was never found was never delivered either.
	Delivered bool
}

// tally is how some variables in use are doing, but for those of which it is decided
// that they are gone.
type tally struct {
	all     int
	gone    int // the server called them gone
	unknown int // not found since, either
}

// doubted are those that are not known to be there.
func (t tally) doubted() int { return t.gone + t.unknown }

// gone is those that are known not to be.
func gone(t tally) int { return t.gone }

// tallies are those of an identity, and of each tenant that it serves.
type tallies struct {
	tally
	tenants map[string]*tally
	uses    map[string]Use // by variable; nil: nobody says
}

// tally counts; variables that were not found since the step are unknown. A variable
// that was never found does not count if no target can have it: it came into use later,
// or no target holds anything. Whoever names such variables would delay the removals of
// others. It is called with the lock held.
func (m *memory) tally(since uint64, uses map[string]Use) tallies {
	t := tallies{tenants: map[string]*tally{}, uses: uses}
	for id, v := range m.vars {
		never := v.foundIn == 0 && (v.newcomer || uses != nil && !uses[id].Delivered)
		if v.used < m.polls || v.decided() || never {
			continue
		}
		t.add(v, since)
		for _, tenant := range uses[id].Tenants {
			if t.tenants[tenant] == nil {
				t.tenants[tenant] = &tally{}
			}
			t.tenants[tenant].add(v, since)
		}
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

// takes reports whether the brake holds back that a variable is gone, and whose loss
// is the reason. That is its tenants' tally, if each of them has lost most of its
// variables. It is the identity's, if in addition most tenants have. One tenant delays
// no removal of another one.
func (b Brake) takes(t tallies, id string, n func(tally) int) (whose tally, held bool) {
	if len(t.tenants) < 2 {
		return t.tally, b.exceeded(n(t.tally), t.all)
	}
	for _, tenant := range t.uses[id].Tenants {
		of := t.tenants[tenant]
		if held = of != nil && b.exceeded(n(*of), of.all); !held {
			break
		}
		whose = *of
	}
	if held || !b.exceeded(n(t.tally), t.all) {
		return whose, held
	}
	lost := 0
	for _, of := range t.tenants {
		if float64(n(*of)) > b.Share*float64(of.all) {
			lost++
		}
	}
	return t.tally, float64(lost) > b.Share*float64(len(t.tenants))
}

// exceeded reports whether n of all variables are too many to go at once.
func (b Brake) exceeded(n, all int) bool {
	return !b.Disabled && n > b.Least && float64(n) > b.Share*float64(all)
}
