package variables

import (
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
)

// Knowledge about the route that answers with a status for each variable, POST
// /secrets/values. In the genuine product only the SaaS edition has it.
const (
	routeUntested int32 = iota
	routeOffered
	routeAbsent
)

// perVariable requests variables over the values route. It returns false if the
// server does not offer the route. In that case no remaining variable has an
// answer.
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

// askValues sends one request. Apart from a value, the route's statements about a
// variable have no form that proves anything. Therefore such variables are
// requested individually. The same applies to a value that JSON cannot represent.
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
			l.anyGood, l.conjurAnswered = true, true
			l.found(id, value)
		} else if v.Bad[id] != nil {
			l.unknown([]string{id}, v.Bad[id])
		} else {
			l.singly[id] = true
		}
	}
	return true
}
