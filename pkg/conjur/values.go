package conjur

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/secretsync/syncer/pkg/secret"
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

// askPerVariable asks for variables over the values route. It is false when
// the server does not offer it, and then has answered for none of those that
// are left.
func (l *load) askPerVariable(ids []string) bool {
	if !l.route.mayOffer() || !l.route.offered() && !l.pay(proven) {
		return false
	}
	for some := range slices.Chunk(ids, l.config.BatchMaxIDs) {
		if l.stop != nil {
			break
		}
		if !l.askValues(some) {
			return false
		}
	}
	return true
}

func (l *load) askValues(ids []string) bool {
	req, err := l.valuesRequest(ids)
	if err != nil {
		l.unknown(ids, err)
		return true
	}
	r, err := l.ask(l.ctx, KindValues, batchSubject(ids), req)
	if err != nil {
		l.stop = err
		return true
	}
	defer r.wipe()
	if isDown(r.status) || r.status >= http.StatusInternalServerError && r.status != http.StatusNotImplemented {
		l.stop = r.statusError("")
		return true
	}
	answers, ok := decodeValues(r.header, r.body)
	if r.status != http.StatusOK || !ok {
		l.route.set(routeAbsent)
		return false
	}
	l.route.set(routeOffered)
	l.request++
	for _, a := range answers {
		l.perVariableAnswer(ids, a)
	}
	for _, id := range ids {
		if !l.isAnswered(id) && !l.singly[id] {
			l.unknown([]string{id}, errLacking)
		}
	}
	return true
}

// perVariableAnswer takes a value. Whatever else the route says of a variable
// has no form that proves anything, so it is asked for singly; as is a value
// that JSON could not carry.
func (l *load) perVariableAnswer(ids []string, a perVariable) {
	id := strings.TrimPrefix(a.ID, l.resource(""))
	if !slices.Contains(ids, id) {
		return
	}
	if a.Status == http.StatusOK && a.Value != nil && *a.Value != "" && !strings.ContainsRune(*a.Value, '\uFFFD') {
		l.anyGood = true
		l.found(id, secret.New([]byte(*a.Value)))
		return
	}
	if l.singly == nil {
		l.singly = map[string]bool{}
	}
	l.singly[id] = true
	if a.Status == http.StatusNotFound || a.Status == http.StatusForbidden {
		l.memory.setAside(id, l.step)
	}
}
