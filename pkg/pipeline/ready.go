package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// Ready says why what should be delivered is not, or may not be fresh. The
// remarks name what does not count. A process that waits for another one to
// stop working is ready.
func (h *host) Ready() (remarks []string, err error) {
	p, leader := h.shown(), h.leader()
	switch {
	case p == nil && leader != "":
		return []string{"standing by for " + leader}, nil
	case p == nil:
		return nil, errors.New("the work has not begun yet")
	}
	if p.secrets != nil {
		remarks, err = p.secrets.ready()
	}
	for _, l := range p.lanes() {
		if err != nil {
			break
		}
		var more []string
		more, err = l.ready(h.config().Server)
		remarks = append(remarks, more...)
	}
	return remarks, err
}

// Ready says what was not delivered yet, or that the poll has found nothing out
// for too long. That a target which was delivered fails now makes no process
// unready; metrics and Events say so.
func (l *lane) ready(server config.Server) (remarks []string, err error) {
	all, identity := l.targets.Records(), l.name
	missing := 0
	var untried, owed []string
	for _, r := range all {
		if !r.Status.Proven.IsZero() {
			continue
		}
		missing++
		switch key, why := r.Spec.Key, r.Status.Err; {
		case why == nil:
			untried = append(untried, string(key))
		case server.Tried:
		case ownReason(r.Spec, why):
			remarks = append(remarks, "not delivered: "+reason(key, why))
		default:
			owed = append(owed, reason(key, why))
		}
	}
	age, polled := l.targets.SincePoll()
	switch {
	case len(untried) > 0:
		err = fmt.Errorf("%d of %d targets of the identity %s have not been synced yet: %s", len(untried), len(all), identity, brief.List(untried))
	case l.config().Refresh.Enabled && len(all) > 0 && !polled && missing == len(all):
		err = listed(fmt.Sprintf("the identity %s has not been able to reach Conjur yet", identity), owed)
	case len(owed) > 0:
		err = listed(fmt.Sprintf("%d of %d targets of the identity %s have not been delivered yet", len(owed), len(all), identity), owed)
	case l.config().Refresh.Enabled && server.Freshness > 0 && age > server.Freshness:
		err = fmt.Errorf("the identity %s has not been able to poll Conjur for %v", identity, age.Round(time.Second))
	}
	return brief.Some(remarks, brief.Names), err
}

// synced says what is not known yet of what belongs into the lanes.
func (p *pipeline) synced() error {
	if p.secrets == nil {
		return nil
	}
	return p.secrets.synced()
}

// reason says why a target is not delivered; most errors name it.
func reason(key targets.Key, why error) string {
	text := why.Error()
	if !strings.Contains(text, string(key)) {
		text = string(key) + ": " + text
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
}

// ownReason reports whether only the target itself explains the error: a
// Secret's own definition, a value that does not fit, a variable that is proven
// to be gone, or a Secret that is not there. The process's own configuration, a
// file's template included, is no such reason.
func ownReason(t *targets.Target, err error) bool {
	if rendering, ok := errors.AsType[*workers.RenderError](err); len(t.Faults) > 0 || ok && rendering.Invalid {
		return false
	}
	var missing *sinks.MissingError
	return workers.Permanent(err, true) || errors.As(err, &missing)
}

// listed returns an error with a line for each of its reasons.
func listed(what string, reasons []string) error {
	return errors.New(strings.Join(append([]string{what}, brief.Some(reasons, brief.Names)...), "\n"))
}
