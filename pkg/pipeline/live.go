package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/notify"
	signals "github.com/secretsync/syncer/pkg/notify/process"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// settings holds the configuration in effect.
type settings struct{ now atomic.Pointer[config.Config] }

func newSettings(cfg *config.Config) *settings {
	s := &settings{}
	s.now.Store(cfg)
	return s
}

func (s *settings) config() *config.Config { return s.now.Load() }

// takesUp reports whether the running parts can continue with another configuration.
func (h *host) takesUp(cfg *config.Config) bool {
	return config.Compare(h.config(), cfg).Scope < config.ScopeProcess && (h.cluster != nil || !needsCluster(cfg))
}

// takeUp puts another configuration in effect. On an error nothing has changed.
func (h *host) takeUp(cfg *config.Config) error {
	before := h.config()
	h.now.Store(cfg)
	if p := h.shown(); p != nil {
		return h.handOver(p, before)
	}
	return nil // the next pipeline starts with it
}

// handOver applies the configuration in effect to a pipeline. If that fails, the previous
// configuration is in effect again.
func (h *host) handOver(p *pipeline, before *config.Config) error {
	cfg := h.config()
	err := p.takeUp(cfg)
	if err != nil {
		h.now.CompareAndSwap(cfg, before)
		return fmt.Errorf("%w (keeping the old configuration)", err)
	}
	return nil
}

// takeUp applies another configuration, which takesUp permits. Parts that the change does
// not concern continue: connections, tokens, proofs and holds stay, and Syncer does not
// repeat requests. On an error nothing has changed.
func (p *pipeline) takeUp(cfg *config.Config) error {
	p.taking.Lock()
	defer p.taking.Unlock()
	before := *p.wired.Load()
	if cfg == before.cfg || p.running.ctx == nil {
		return nil
	}
	notifiers, err := p.notifiers(cfg)
	if err != nil {
		return err
	}
	lanes, leaving, err := p.relane(before, cfg)
	if err != nil {
		return err
	}
	after := wiring{cfg: cfg, lanes: lanes, rotates: before.rotates}
	if rotatesAnew(before.cfg, cfg) {
		if after.rotates, err = newRotating(p, cfg, before); err != nil {
			stopAll(slices.DeleteFunc(lanes, func(l *lane) bool { return slices.Contains(before.lanes, l) }))
			return err
		}
	}
	if p.secrets != nil {
		after.watches = p.secrets.watching(cfg)
	}
	stopAll(leaving) // they stay visible until they have ended
	p.wire(after)
	for _, l := range lanes {
		if slices.Contains(before.lanes, l) {
			l.guide(before.cfg)
		} else {
			l.targets.Renew()
			l.start(p.running.ctx)
		}
	}
	if p.app != nil {
		p.app.SetNotifiers(notifiers...)
	}
	wanted := p.sources()
	p.running.keep(wanted)
	before.rotates.close(after.rotates)
	if p.files != nil {
		p.take(queue.Hint{Trigger: "configuration", Wakes: true}, lanes[0].targets.Replace(cfg.Targets))
	} else {
		p.secrets.takeUp(before)
	}
	p.texts.refresh()
	p.running.start(wanted)
	return nil
}

// relane returns the lanes of another configuration and the lanes to stop. A lane stays
// unless its connection to Conjur changes.
func (p *pipeline) relane(before wiring, cfg *config.Config) (lanes, leaving []*lane, err error) {
	changed := config.Compare(before.cfg, cfg).Lanes
	anew := func(id config.Identity) bool { return slices.Contains(changed, id.Name) }
	stays := func(id config.Identity) bool { return !anew(id) }
	made, err := p.newLanes(cfg, slices.DeleteFunc(slices.Clone(cfg.Identities), stays))
	if err != nil {
		return nil, nil, err
	}
	for _, l := range before.lanes {
		if anew(l.identity) {
			leaving = append(leaving, l)
		} else {
			lanes = append(lanes, l)
		}
	}
	return append(lanes, made...), leaving, nil
}

// rotatesAnew reports whether the rotation of sets, or the identity that rotates,
// changes.
func rotatesAnew(before, after *config.Config) bool {
	return slices.ContainsFunc(config.Compare(before, after).Settings, func(name string) bool { return strings.HasPrefix(name, "rotation.") })
}

// guide brings the new configuration to a lane that stays.
func (l *lane) guide(before *config.Config) {
	cfg := l.config()
	_ = l.values.SetRules(rules(cfg)) // a checked configuration has no invalid rules
	l.pool.SetPolicy(policy(cfg))
	l.queue.SetBackoff(backoffOf(cfg))
	select {
	case <-l.intervals: // drop an older interval that the poll has not read
	default:
	}
	l.intervals <- cfg.Refresh.Interval

	var due []targets.Key // targets left unchanged until now
	for _, r := range l.targets.Records() {
		if r.Status.Err != nil || policy(before).KeepDeleted && !policy(cfg).KeepDeleted {
			due = append(due, r.Spec.Key)
		}
	}
	l.Enqueue(queue.Hint{Trigger: "configuration", Wakes: true}, due...)
}

// takeUp forgets the Secrets that no watch follows any more. It moves Secrets to the lane
// of the identity that now serves them.
func (s *secrets) takeUp(before wiring) {
	cfg := s.config()
	var stay []*sources.Secrets
	for _, w := range s.watches() {
		if slices.Contains(before.watches, w) {
			stay = append(stay, w)
		}
	}
	for _, r := range s.set.Records() {
		namespace, name := r.Spec.Secret.Namespace, r.Spec.Secret.Name
		follows := func(w *sources.Secrets) bool { return w.Follows(namespace, name) }
		if !slices.ContainsFunc(stay, follows) && named(cfg, namespace, name) < 0 {
			s.forget(r.Spec.Key)
		}
	}
	if !reflect.DeepEqual(before.cfg.Kubernetes.Definitions, cfg.Kubernetes.Definitions) || !slices.EqualFunc(before.cfg.Identities, cfg.Identities, sameService) {
		for _, w := range stay {
			w.Again()
		}
	}
	if s.news.restarts != nil {
		s.news.restarts.SetLimits(cfg.Kubernetes.Restarts.QuietPeriod, cfg.Kubernetes.Restarts.PerHour)
	}
}

// sameService reports whether two identities make the same targets from the same Secrets.
func sameService(a, b config.Identity) bool {
	return a.Name == b.Name && a.Conjur.Account == b.Conjur.Account && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Secrets, b.Secrets)
}

// policy returns the rules for a sync.
func policy(cfg *config.Config) workers.Policy {
	return workers.Policy{RemoveRevoked: cfg.RemoveDeleted, KeepDeleted: !cfg.RestoreDeletedFiles}
}

// backoffOf returns the backoff between the retries of a target.
func backoffOf(cfg *config.Config) retry.Backoff {
	return retry.Backoff{First: cfg.Retry.Interval, Max: cfg.LongestRetry()}
}

// notifiers are the ways, in addition to files, to notify the application of updates.
func (p *pipeline) notifiers(cfg *config.Config) ([]notify.Notifier, error) {
	switch {
	case p.Command != nil:
		return []notify.Notifier{p.Command.Notify}, nil
	case cfg.Signal.Number == 0:
		return nil, nil
	}
	signaller, err := signals.NewSignaller(signals.SignalConfig{
		Signal:  cfg.Signal.Number,
		User:    cfg.Signal.User,
		Command: cfg.Signal.Command,
		Sent:    p.signalled,
		Log:     p.Log,
	})
	if err != nil {
		return nil, err
	}
	return []notify.Notifier{signaller.Notify}, nil
}

// signalled counts sent signals.
func (p *pipeline) signalled(sent, refused int) {
	if p.host != nil {
		p.host.metrics.Signalled(sent, refused)
	}
}
