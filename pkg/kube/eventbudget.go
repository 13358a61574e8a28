package kube

import (
	"maps"

	"golang.org/x/time/rate"
)

// The budgets of Normal Events with the same reason. An Event costs the API server about as
// much as the write of a Secret that it reports.
const (
	eventsAtOnce, eventsPerSecond       = 100, 10 // of all namespaces
	namespaceAtOnce, namespacePerSecond = 25, 1   // of one namespace
)

// eventBudget limits Normal Events, so that a change of many Secrets does not double the
// load of the API server. One namespace cannot take the whole budget. The Recorder's lock
// guards it.
type eventBudget struct {
	all        map[string]*rate.Limiter    // by reason
	namespaces map[[2]string]*rate.Limiter // by namespace and reason
}

// allow reports whether one more Event fits the budget.
func (b *eventBudget) allow(namespace, reason string) bool {
	if b.all == nil {
		b.all, b.namespaces = map[string]*rate.Limiter{}, map[[2]string]*rate.Limiter{}
	}
	key := [2]string{namespace, reason}
	if b.all[reason] == nil {
		b.all[reason] = rate.NewLimiter(eventsPerSecond, eventsAtOnce)
	}
	if b.namespaces[key] == nil {
		b.namespaces[key] = rate.NewLimiter(namespacePerSecond, namespaceAtOnce)
	}
	return b.namespaces[key].Allow() && b.all[reason].Allow()
}

// prune drops the limiters of namespaces that have been quiet.
func (b *eventBudget) prune() {
	maps.DeleteFunc(b.namespaces, func(_ [2]string, l *rate.Limiter) bool { return l.Tokens() >= namespaceAtOnce })
}
