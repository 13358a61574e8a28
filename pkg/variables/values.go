package variables

import (
	"slices"
	"sync"

	"github.com/secretsync/syncer/pkg/conjur"
)

// valuesRoute remembers whether the server has the route that answers with a
// status for each variable: POST /secrets/values, which the genuine server has
// in its SaaS edition only.
type valuesRoute struct {
	mu    sync.Mutex
	state routeState
}

type routeState int

const (
	routeUntested routeState = iota
	routeOffered
	routeAbsent
)

func (v *valuesRoute) mayOffer() bool { return v.get() != routeAbsent }
func (v *valuesRoute) offered() bool  { return v.get() == routeOffered }

func (v *valuesRoute) get() routeState {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

func (v *valuesRoute) set(s routeState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state = s
}

// perVariable asks for variables over the values route. It is false when
// the server does not offer it, and then has answered for none of those that
// are left.
func (l *load) perVariable(ids []string) bool {
	if !l.route.mayOffer() || !l.route.offered() && !l.pay(proven) {
		return false
	}
	for some := range slices.Chunk(ids, conjur.MostValues) {
		if l.stop != nil {
			break
		}
		if !l.askValues(some) {
			return false
		}
	}
	return true
}

// askValues asks once. Whatever the route says of a variable, but its value, has
// no form that proves anything, so it is asked for singly; as is a value that
// JSON could not carry.
func (l *load) askValues(ids []string) bool {
	v := l.conjur.Values(l.ctx, ids)
	switch v.Form {
	case conjur.Given:
	case conjur.Down, conjur.TooLarge:
		l.stop = v.Err
		return true
	default:
		l.route.set(routeAbsent)
		return false
	}
	l.route.set(routeOffered)
	l.request++
	for _, id := range v.Missing {
		l.memory.setAside(id, l.step)
	}
	for _, id := range ids {
		if value, ok := v.Found[id]; ok {
			l.anyGood, l.heard = true, true
			l.found(id, value)
		} else if v.Bad[id] != nil {
			l.unknown([]string{id}, v.Bad[id])
		} else {
			l.singly[id] = true
		}
	}
	return true
}
