package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// secretsLook is the time between looks at Secrets that may be read but not
// watched.
const secretsLook = 10 * time.Second

// secretsPlace is the Kubernetes Secrets of some namespaces. What belongs
// there is said by the Secrets themselves, and by the configuration.
type secretsPlace struct {
	*pipeline
	secrets *sinks.KubeSecrets
	texts   *texts
	watches []*sources.Secrets
	news    *news

	// What a one-shot process could not read at first, and why; until it is
	// completed, nobody else reads that.
	unread    []*sources.Secrets
	unreadFor error
	completed atomic.Bool

	mu    sync.Mutex
	found map[targets.Key]types.UID // the Secrets that are there
}

func newSecretsPlace(p *pipeline) *secretsPlace {
	s := &secretsPlace{
		pipeline: p,
		secrets:  sinks.NewKubeSecrets(p.host.cluster.Core),
		texts:    newTexts(p),
		found:    map[targets.Key]types.UID{},
	}
	s.news = newNews(p, s.reference)
	for namespace, names := range watched(p.cfg.Kubernetes) {
		s.watches = append(s.watches, &sources.Secrets{
			Client:    p.host.cluster,
			Namespace: namespace,
			Names:     names,
			Interval:  secretsLook,
			Upsert:    s.upsert,
			Gone:      s.gone,
			Unread:    s.unreadable,
			Report:    p.troubles.Report,
		})
	}
	return s
}

// watched gives the namespaces that are watched, "" for all, each with the
// Secrets that are listed there; none: those with the label.
func watched(k config.Kubernetes) map[string][]string {
	namespaces := map[string][]string{}
	for _, def := range k.Definitions {
		namespaces[def.Namespace] = append(namespaces[def.Namespace], def.Name)
	}
	if !k.ByLabel() {
		return namespaces
	}
	for _, namespace := range k.Namespaces {
		if namespace == config.AllNamespaces {
			namespace = ""
		}
		namespaces[namespace] = nil
	}
	return namespaces
}

func (s *secretsPlace) sink() workers.Sink           { return s.secrets }
func (s *secretsPlace) templates() workers.Templates { return s.texts }

// altered finds nothing: the watch tells of it.
func (s *secretsPlace) altered(*lane) []targets.Key { return nil }

// prepare reads, in a one-shot process, what there is; otherwise the watches
// do.
func (s *secretsPlace) prepare(ctx context.Context) {
	if !s.cfg.Mode.OneShot() {
		return
	}
	var errs []error
	for _, watch := range s.watches {
		if err := s.load(ctx, watch); err != nil {
			s.unread = append(s.unread, watch)
			errs = append(errs, err)
		}
	}
	s.unreadFor = errors.Join(errs...)
}

// load reads what a watch would tell of.
func (s *secretsPlace) load(ctx context.Context, watch *sources.Secrets) error {
	err := watch.Load(ctx)
	if ctx.Err() == nil {
		s.troubles.Report("secrets of "+watch.Namespace, err)
	}
	return err
}

// complete reads what prepare could not.
func (s *secretsPlace) complete(ctx context.Context) error {
	defer s.completed.Store(true)
	unread, tried := slices.Clone(s.unread), true
	return backoff.Retry(func() error {
		if tried {
			tried = false
			return s.unreadFor
		}
		var errs []error
		unread = slices.DeleteFunc(unread, func(watch *sources.Secrets) bool {
			err := s.load(ctx, watch)
			errs = append(errs, err)
			return err == nil
		})
		return errors.Join(errs...)
	}, backoff.WithContext(limited(s.cfg.Retry), ctx))
}

// limited is how often, and how fast, a one-shot process tries again.
func limited(r config.Retry) backoff.BackOff {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(max(r.Interval, time.Millisecond)),
		backoff.WithMaxInterval(longestRetry), backoff.WithMaxElapsedTime(0))
	if r.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(r.Limit))
}

func (s *secretsPlace) sources() []func(context.Context) {
	run := []func(context.Context){s.news.run}
	if s.cfg.Mode.OneShot() {
		return append(run, s.reload)
	}
	for _, watch := range s.watches {
		run = append(run, watch.Run)
	}
	return append(run, s.texts.sources()...)
}

// reload looks again for Secrets that a one-shot process waits for.
func (s *secretsPlace) reload(ctx context.Context) {
	tick := time.NewTicker(min(max(s.cfg.Retry.Interval, time.Second), secretsLook))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, watch := range s.watches {
			if s.completed.Load() || !slices.Contains(s.unread, watch) {
				_ = s.load(ctx, watch) // which reports it
			}
		}
	}
}

// upsert makes a Secret as it is now the target of its lane.
func (s *secretsPlace) upsert(source kube.Source, change sources.Change) {
	key := targets.KubeSecretKey(source.Namespace, source.Name)
	s.mu.Lock()
	s.found[key] = source.UID
	s.mu.Unlock()
	l := s.lane(key, source.Namespace, source.Name)
	if l == nil {
		return
	}
	switch {
	case change == sources.Defined:
		def := s.definition(l, source.Namespace, source.Name)
		def.Annotations, def.Map, def.HasMap = source.Annotations, source.Map, source.HasMap
		s.define(l, def, "secret")
	case source.ResourceVersion != s.secrets.Seen(source.Namespace, source.Name):
		l.enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
	}
}

// gone takes a Secret out of its lane. One that is named by the configuration
// is waited for, or made.
func (s *secretsPlace) gone(namespace, name string) {
	key := targets.KubeSecretKey(namespace, name)
	s.mu.Lock()
	delete(s.found, key)
	s.mu.Unlock()
	l := s.lane(key, namespace, name)
	if l == nil {
		return
	}
	if def := s.definition(l, namespace, name); def.Named {
		def.Missing = true
		s.define(l, def, "secret")
		return
	}
	l.targets.Delete(key)
	l.fresh.Forget(key)
	s.secrets.Forget(namespace, name)
	s.troubles.Forget(string(key))
	s.news.forget(key)
	s.texts.refresh()
}

// lane finds the lane of a Secret, and says so when there is none.
func (s *secretsPlace) lane(key targets.Key, namespace, name string) *lane {
	l := s.laneOf(namespace, name)
	if l == nil {
		err := fmt.Errorf("no identity serves the namespace %q; add it to one of the identities, or configure a default identity", namespace)
		s.troubles.Report(string(key), err)
		s.news.failed(key, err)
	}
	return l
}

// define has a target made of a definition, and synced.
func (s *secretsPlace) define(l *lane, def targets.SecretDefinition, trigger string) {
	t, warnings := targets.FromSecret(def)
	if l.targets.Put(t) {
		for _, warning := range warnings {
			s.log.Warn(warning, zap.String("target", string(t.Key)))
		}
		s.texts.refresh()
	}
	l.enqueue(queue.Hint{Trigger: trigger, Wakes: true}, t.Key)
	s.news.defined(t)
}

// definition is what the configuration says of a Secret.
func (s *secretsPlace) definition(l *lane, namespace, name string) targets.SecretDefinition {
	for _, def := range s.cfg.Kubernetes.Definitions {
		if def.Namespace == namespace && def.Name == name {
			def.Account, def.Named = l.identity.Conjur.Account, true
			return def
		}
	}
	return targets.SecretDefinition{Namespace: namespace, Name: name, Account: l.identity.Conjur.Account}
}

// unreadable takes down that a Secret which the configuration names may be
// there or not.
func (s *secretsPlace) unreadable(namespace, name string, err error) {
	key := targets.KubeSecretKey(namespace, name)
	if l := s.lane(key, namespace, name); l != nil {
		def := s.definition(l, namespace, name)
		def.Unread = err.Error()
		s.define(l, def, "secret")
	}
}

// synced tells whether all that belongs there is known.
func (s *secretsPlace) synced() error {
	return s.known(func(watch *sources.Secrets) bool { return watch.Synced() })
}

// ready is satisfied with what may be read.
func (s *secretsPlace) ready() error {
	return s.known(func(watch *sources.Secrets) bool { return watch.Synced() || watch.Refused() })
}

func (s *secretsPlace) known(well func(*sources.Secrets) bool) error {
	for _, watch := range s.watches {
		if !well(watch) {
			return fmt.Errorf("the Secrets of namespace %q are not all known yet", watch.Namespace)
		}
	}
	return nil
}

func (s *secretsPlace) held(l *lane, e conjur.HoldEvent) { s.news.held(l, e) }

// reference refers to a Secret in Events.
func (s *secretsPlace) reference(key targets.Key) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(string(key), "secret/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	return kube.SecretReference(namespace, name, s.found[key])
}

func (s *secretsPlace) settled(l *lane, r workers.Result) { s.news.settled(l, r) }
