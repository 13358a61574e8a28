package variables

import (
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
)

// What is known of whether the server has the route that answers with a status for
// each variable: POST /secrets/values, which the genuine server has in its SaaS
// edition only.
const (
	routeUntested int32 = iota
	routeOffered
	routeAbsent
)

// perVariable asks for variables over the values route. It is false when
// the server does not offer it, and then has answered for none of those that
// are left.
func (l *load) perVariable(ids []string) bool {
	if l.route.Load() == routeAbsent || l.route.Load() == routeUntested && !l.pay(proven) {
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
		l.route.Store(routeAbsent)
		return false
	}
	l.route.Store(routeOffered)
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
