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

// Healthy returns a problem that a restart of the process would solve.
func (s *supervisor) Healthy() error {
	p := s.active()
	if p == nil {
		return nil // another process works, or this one is about to start
	}
	for _, l := range p.lanes.all() {
		if l.pool.Overdue() {
			return fmt.Errorf("the workers of the identity %s have not finished a sync for too long; see SyncerWorkerStuck in docs/troubleshooting.md", l.name)
		}
	}
	return nil
}

// Ready returns why a required target is not delivered or may not be fresh. The remarks
// name targets that do not count. A process on standby is ready.
func (s *supervisor) Ready() (remarks []string, err error) {
	p, leader := s.active(), s.leader()
	switch {
	case p == nil && leader != "":
		return []string{"standing by for " + leader}, nil
	case p == nil:
		return nil, errors.New("the work has not begun yet")
	}
	remarks, err = p.inventory.ready()
	for _, l := range p.lanes.all() {
		if err != nil {
			break
		}
		var more []string
		more, err = l.ready(s.settings.config().Server)
		remarks = append(remarks, more...)
	}
	return remarks, err
}

// ready returns which targets were not delivered yet, or that the poll has failed for too
// long. A target that was delivered and fails now does not make the process unready.
// Metrics and Events report it.
func (l *lane) ready(server config.Server) (remarks []string, err error) {
	untried, failed, all := l.targets.Unproven()
	identity := l.name
	var owed []string
	for _, r := range failed {
		switch key, why := r.Spec.Key, r.Status.Err; {
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
		err = fmt.Errorf("%d of %d targets of the identity %s have not been synced yet: %s", len(untried), all, identity, brief.List(untried))
	case l.settings.config().Refresh.Enabled && all > 0 && !polled && len(failed) == all:
		err = listed(fmt.Sprintf("the identity %s has not been able to reach Conjur yet", identity), owed)
	case len(owed) > 0:
		err = listed(fmt.Sprintf("%d of %d targets of the identity %s have not been delivered yet", len(owed), all, identity), owed)
	case l.settings.config().Refresh.Enabled && server.Freshness > 0 && age > server.Freshness:
		err = fmt.Errorf("the identity %s has not been able to poll Conjur for %v", identity, age.Round(time.Second))
	}
	return brief.Some(remarks, brief.Names), err
}

// reason returns why a target is not delivered, with its name.
func reason(key targets.Key, why error) string {
	text := why.Error()
	if !workers.NamesTarget(why) {
		text = string(key) + ": " + text
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
}

// ownReason reports whether only the target itself explains the error. Examples are a
// Secret's definition, a value that does not fit, a variable that is proven gone, or a
// missing Secret. The configuration of the process, including a file's template, is not
// such a reason.
func ownReason(t *targets.Target, err error) bool {
	if rendering, ok := errors.AsType[*workers.RenderError](err); len(t.Faults) > 0 || ok && rendering.Invalid {
		return false
	}
	var missing *sinks.MissingError
	return workers.Permanent(err, true) || errors.As(err, &missing)
}

// listed returns an error with one line for each reason.
func listed(what string, reasons []string) error {
	return errors.New(strings.Join(append([]string{what}, brief.Some(reasons, brief.Names)...), "\n"))
}
