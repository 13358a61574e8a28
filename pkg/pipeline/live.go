package pipeline

import (
	"errors"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/secretsync/syncer/config"
	signals "github.com/secretsync/syncer/pkg/process"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// settings is the configuration in effect.
type settings struct{ now atomic.Pointer[config.Config] }

func newSettings(cfg *config.Config) *settings {
	s := &settings{}
	s.now.Store(cfg)
	return s
}

func (s *settings) config() *config.Config { return s.now.Load() }

// isLive reports whether what runs can take up a change: nothing that it is
// made of differs.
func isLive(before, after *config.Config) bool {
	templates := func(t *targets.Target) bool { return t.Template.File != "" }
	return config.Compare(before, after).Scope <= config.ScopeLive &&
		// The watches would have to tell of all Secrets again.
		reflect.DeepEqual(before.Kubernetes.Definitions, after.Kubernetes.Definitions) &&
		slices.EqualFunc(before.Identities, after.Identities, sameSecrets) &&
		// Nobody watches templates where there was none.
		(slices.ContainsFunc(before.Targets, templates) || !slices.ContainsFunc(after.Targets, templates))
}

// sameSecrets reports whether two identities serve the same Secrets.
func sameSecrets(a, b config.Identity) bool {
	return a.Name == b.Name && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Secrets, b.Secrets)
}

// takeUp makes a configuration that is live the one in effect.
func (h *host) takeUp(cfg *config.Config) error {
	h.now.Store(cfg)
	if p := h.shown(); p != nil {
		return p.takeUp()
	}
	return nil // the next pipeline begins with it
}

// takeUp brings the configuration in effect to those who do not look at it
// themselves. Connections, tokens, proofs and holds stay.
func (p *pipeline) takeUp() error {
	p.taking.Lock()
	defer p.taking.Unlock()
	cfg := p.config()
	if cfg == p.taken {
		return nil
	}
	p.taken = cfg
	var errs []error
	for _, l := range p.lanes {
		errs = append(errs, l.values.SetRules(rules(cfg)))
		l.pool.SetPolicy(policy(cfg))
		l.queue.SetBackoff(backoffOf(cfg))
		select {
		case <-l.intervals: // an older one that was not taken up
		default:
		}
		l.intervals <- cfg.Refresh.Interval
	}
	if p.secrets != nil && p.secrets.news.restarts != nil {
		p.secrets.news.restarts.SetLimits(cfg.Kubernetes.Restarts.QuietPeriod, cfg.Kubernetes.Restarts.PerHour)
	}
	if p.app != nil {
		errs = append(errs, p.renewTellers())
	}
	if p.files != nil {
		changes := p.lanes[0].targets.Replace(cfg.Targets)
		p.take(queue.Hint{}, slices.DeleteFunc(changes, func(c targets.Change) bool { return !c.Gone }))
	}
	for _, l := range p.lanes { // what was left as it is may be due now
		l.enqueue(queue.Hint{Trigger: "configuration", Wakes: true}, l.targets.Keys()...)
	}
	return errors.Join(errs...)
}

// policy is what a sync may do.
func policy(cfg *config.Config) workers.Policy {
	return workers.Policy{RemoveRevoked: cfg.RemoveDeleted, KeepDeleted: !cfg.RestoreDeletedFiles}
}

// backoffOf spaces the retries of a target.
func backoffOf(cfg *config.Config) queue.Backoff {
	return queue.Backoff{First: cfg.Retry.Interval, Max: cfg.LongestRetry()}
}

// renewTellers has the application told of updates in the ways, besides files,
// that are configured.
func (p *pipeline) renewTellers() error {
	cfg := p.config()
	if p.Command != nil {
		p.app.SetTellers(p.Command.Tell)
		return nil
	}
	if cfg.Signal.Number == 0 {
		p.app.SetTellers()
		return nil
	}
	signaller, err := signals.NewSignaller(signals.SignalConfig{
		Signal:  cfg.Signal.Number,
		User:    cfg.Signal.User,
		Command: cfg.Signal.Command,
		Sent:    p.signalled,
		Log:     p.Log,
	})
	if err != nil {
		return err
	}
	p.app.SetTellers(signaller.Tell)
	return nil
}

// signalled counts signals that were sent.
func (p *pipeline) signalled(sent, refused int) {
	if p.host != nil {
		p.host.metrics.Signalled(sent, refused)
	}
}
