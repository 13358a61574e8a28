package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// settings holds the configuration in effect.
type settings struct {
	applying sync.Mutex // held while parts are made for a configuration
	now      atomic.Pointer[config.Config]
}

func newSettings(cfg *config.Config) *settings {
	s := &settings{}
	s.now.Store(cfg)
	return s
}

func (s *settings) config() *config.Config { return s.now.Load() }

// canApply reports whether the running parts can continue with another configuration.
func (s *supervisor) canApply(cfg *config.Config) bool {
	return config.Compare(s.settings.config(), cfg).Scope < config.ScopeProcess && (s.cluster != nil || !needsCluster(cfg))
}

// apply puts another configuration in effect. On an error nothing has changed. Without a
// running pipeline, the next one starts with it.
func (s *supervisor) apply(cfg *config.Config) error {
	s.settings.applying.Lock()
	defer s.settings.applying.Unlock()
	p := s.active()
	if p == nil || p.running.ctx == nil {
		s.settings.now.Store(cfg)
		return nil
	}
	if err := p.apply(cfg); err != nil {
		return fmt.Errorf("%w (keeping the old configuration)", err)
	}
	return nil
}

// apply applies another configuration, which canApply permits. Parts that the change does
// not concern continue: connections, tokens, proofs and holds stay, and Syncer does not
// repeat requests. On an error nothing has changed.
func (p *pipeline) apply(cfg *config.Config) error {
	before, had := p.settings.config(), p.lanes.all()
	notify, err := p.app.prepare(cfg)
	if err != nil {
		return err
	}
	lanes, leaving, err := p.changeLanes(before, cfg)
	if err != nil {
		return err
	}
	isNew := func(l *lane) bool { return !slices.Contains(had, l) }
	next, err := p.destination.prepare(before, cfg)
	if err != nil {
		stopAll(slices.DeleteFunc(lanes, func(l *lane) bool { return !isNew(l) }))
		return err
	}
	stopAll(leaving) // they stay visible until they have ended
	p.settings.now.Store(cfg)
	p.lanes.set(lanes)
	next.commit()
	for _, l := range lanes {
		if isNew(l) {
			l.targets.Renew()
			l.start(p.running.ctx)
		} else {
			l.apply(before, cfg)
		}
	}
	notify()
	p.follow(next)
	return nil
}

// follow runs the sources that a change wants, which was committed before.
func (p *pipeline) follow(next change) {
	wanted := p.sources()
	p.running.keep(wanted)
	next.finish()
	p.texts.Refresh()
	p.running.start(wanted)
}

// rewatch follows the namespaces that the division now has. Everything else continues.
func (p *pipeline) rewatch() error {
	p.settings.applying.Lock()
	defer p.settings.applying.Unlock()
	if p.running.ctx == nil {
		return nil
	}
	cfg := p.settings.config()
	next, err := p.destination.prepare(cfg, cfg)
	if err == nil {
		next.commit()
		p.follow(next)
	}
	return err
}

// changeLanes returns the lanes of another configuration and the lanes to stop. A lane
// stays unless its connection to Conjur changes.
func (p *pipeline) changeLanes(before, cfg *config.Config) (lanes, leaving []*lane, err error) {
	changed := config.Compare(before, cfg).Lanes
	isNew := func(id config.Identity) bool { return slices.Contains(changed, id.Name) }
	stays := func(id config.Identity) bool { return !isNew(id) }
	made, err := p.newLanes(cfg, slices.DeleteFunc(slices.Clone(cfg.Identities), stays))
	if err != nil {
		return nil, nil, err
	}
	for _, l := range p.lanes.all() {
		if isNew(l.identity) {
			leaving = append(leaving, l)
		} else {
			lanes = append(lanes, l)
		}
	}
	return append(lanes, made...), leaving, nil
}

// apply applies another configuration to a lane that stays.
func (l *lane) apply(before, cfg *config.Config) {
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

// prepare implements destination.
func (s *secrets) prepare(before, cfg *config.Config) (change, error) {
	watched, old, rotated := s.watching(cfg), s.watches(), s.rotations.now.Load()
	rotates, err := s.rotations.prepare(before, cfg)
	commit := func() {
		s.followed.Store(watched)
		s.rotations.now.Store(rotates)
	}
	finish := func() {
		rotated.close(rotates)
		s.follow(before, cfg, slices.DeleteFunc(slices.Clone(watched), func(w *sources.Secrets) bool { return !slices.Contains(old, w) }))
	}
	return change{commit, finish}, err
}

// follow forgets the Secrets that no watch follows any more. It moves Secrets to the lane
// of the identity that now serves them. stay are the watches that continue.
func (s *secrets) follow(before, cfg *config.Config, stay []*sources.Secrets) {
	for _, r := range s.set.Records() {
		namespace, name := r.Spec.Secret.Namespace, r.Spec.Secret.Name
		follows := func(w *sources.Secrets) bool { return w.Follows(namespace, name) }
		if !slices.ContainsFunc(stay, follows) && named(cfg, namespace, name) < 0 {
			s.definitions.forget(r.Spec.Key)
		}
	}
	if !reflect.DeepEqual(before.Kubernetes.Definitions, cfg.Kubernetes.Definitions) || !slices.EqualFunc(before.Identities, cfg.Identities, sameService) {
		for _, w := range stay {
			w.Again()
		}
	}
	s.restarts.SetLimits(cfg.Kubernetes.Restarts.QuietPeriod, cfg.Kubernetes.Restarts.PerHour)
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
