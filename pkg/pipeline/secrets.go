package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// secretsPollInterval is the time between checks of Secrets that Syncer may read but not watch.
const secretsPollInterval = 10 * time.Second

// secrets are the Kubernetes Secrets of some namespaces, and the watches on them.
type secrets struct {
	settings    *settings
	set         *records.Set
	cluster     *kube.Client
	division    *kube.Division // nil: the configuration lists the namespaces
	troubles    *health.Troubles
	definitions *definer
	restarts    *notify.Restarts
	rotations   *rotations
	texts       *sources.TemplateTexts
	tasks       []source // that run in this mode, whatever is watched

	followed atomic.Value // []*sources.Secrets: one watch for each namespace
}

// prime does nothing: the watches read the Secrets.
func (s *secrets) prime(context.Context) {}

// watching returns the watches for a configuration. It keeps the existing watches that
// follow the same Secrets, and adds new ones.
func (s *secrets) watching(cfg *config.Config) (all []*sources.Secrets) {
	there := s.watches()
	k := cfg.Kubernetes
	k.Namespaces = s.division.Served(k.Namespaces)
	for namespace, names := range k.Watched() {
		if i := slices.IndexFunc(there, func(w *sources.Secrets) bool { return w.Namespace == namespace && slices.Equal(w.Names, names) }); i >= 0 {
			all = append(all, there[i])
			continue
		}
		all = append(all, &sources.Secrets{
			Client:      s.cluster,
			Namespace:   namespace,
			Names:       names,
			Known:       s.knownNamespaces,
			Interval:    secretsPollInterval,
			Definitions: s.set.Budget / 8,
			Handler:     s.definitions,
			See:         func(found *corev1.Secret) { kubesecrets.RecordBeforeFirstSync(s.set, found) },
			Reporter:    s.troubles,
		})
	}
	return all
}

func (s *secrets) watches() []*sources.Secrets {
	followed, _ := s.followed.Load().([]*sources.Secrets)
	return followed
}

// knownNamespaces returns the namespaces in the configuration and the namespace of the
// Pod.
func (s *secrets) knownNamespaces() []string {
	names := []string{s.settings.config().Kubernetes.Namespace}
	for _, identity := range s.settings.config().Identities {
		names = append(names, identity.Namespaces...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *secrets) sources() []source {
	all := slices.Clone(s.tasks)
	for _, watch := range s.watches() {
		all = append(all, watch)
	}
	all = append(all, s.rotations.sources()...)
	return append(all, s.texts.Watches()...)
}

// known returns why the Secrets of some namespaces are not all known yet.
func (s *secrets) known() error {
	if _, err := s.division.Ready(); err != nil {
		return err
	}
	for _, watch := range s.watches() {
		if err := watch.Complete(); err != nil {
			return err
		}
	}
	return nil
}

// knows reports whether every watch that should follow a Secret has read all its Secrets.
func (s *secrets) knows(namespace, secret string) bool {
	for _, w := range s.watches() {
		if w.Follows(namespace, secret) && w.Complete() != nil {
			return false
		}
	}
	return true
}

// ready returns an error if some readable Secrets are not known yet. It only remarks on
// namespaces that Syncer may not read, unless no Secret at all may be read.
func (s *secrets) ready() (remarks []string, err error) {
	others, err := s.division.Ready()
	if err != nil {
		return nil, err
	}
	for _, watch := range s.watches() {
		switch err := watch.Complete(); {
		case err == nil:
		case apierrors.IsForbidden(err):
			remarks = append(remarks, fmt.Sprintf("not served: the Secrets of namespace %q may not be read", watch.Namespace))
		default:
			return nil, err
		}
	}
	if len(remarks) > 0 && len(remarks) == len(s.watches()) && len(s.set.Records()) == 0 {
		return nil, brief.ListError("no Secret may be read", remarks)
	}
	return brief.Some(append(remarks, others...), brief.Names), nil
}

// newSet makes a set in which each tenant's Secrets have a budget.
func newSet(cfg *config.Config) *records.Set {
	if cfg.Mode != config.ModeStandalone {
		return &records.Set{}
	}
	return &records.Set{Budget: cfg.Kubernetes.NamespaceMemory << 20}
}

// loading is the Kubernetes Secrets of a one-shot process, which reads them and watches
// none.
type loading struct {
	secrets *secrets

	// The Secrets that prime could not read, and the reasons. Until completed is true,
	// only prime and complete use these fields.
	unread    []*sources.Secrets
	unreadFor error
	completed atomic.Bool
}

// prime reads the existing Secrets.
func (l *loading) prime(ctx context.Context) {
	l.unread, l.unreadFor = loadAll(ctx, l.secrets.watches())
}

// prepare implements destination.
func (l *loading) prepare(before, cfg *config.Config) (change, error) {
	return l.secrets.prepare(before, cfg)
}

// sources returns the tasks, and the checks for Secrets that did not exist yet.
func (l *loading) sources() []source { return append(slices.Clone(l.secrets.tasks), l) }

// loadAll returns the watches that could not be loaded, and the reasons.
func loadAll(ctx context.Context, watches []*sources.Secrets) (unread []*sources.Secrets, why error) {
	for _, watch := range watches {
		if err := load(ctx, watch); err != nil {
			unread = append(unread, watch)
			why = errors.Join(why, err)
		}
	}
	return unread, why
}

// load reads the Secrets that a watch would follow.
func load(ctx context.Context, watch *sources.Secrets) error {
	watch.Prime(ctx)
	return watch.Complete()
}

// complete reads the Secrets that prime could not read.
func (l *loading) complete(ctx context.Context) error {
	defer l.completed.Store(true)
	unread, why := l.unread, l.unreadFor
	tried := false // whether complete has tried; prime did before
	return backoff.Retry(func() error {
		if tried {
			unread, why = loadAll(ctx, unread)
		}
		tried = true
		return why
	}, backoff.WithContext(limited(l.secrets.settings.config()), ctx))
}

// limited returns the count and the backoff of retries in a one-shot process.
func limited(cfg *config.Config) backoff.BackOff {
	pauses := backoffOf(cfg).Start()
	if cfg.Retry.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(cfg.Retry.Limit))
}

// Run checks again for Secrets that the process waits for.
func (l *loading) Run(ctx context.Context) {
	wake.Every(ctx, min(max(l.secrets.settings.config().Retry.Interval, time.Second), secretsPollInterval), func() {
		for _, watch := range l.secrets.watches() {
			if l.completed.Load() || !slices.Contains(l.unread, watch) {
				_ = load(ctx, watch) // load reports the error
			}
		}
	})
}

const (
	// waitingPollInterval is the time between retries of Secrets that exceeded the budget of
	// their namespace. waitingMost bounds the Secrets of a namespace in one retry.
	waitingPollInterval = 10 * time.Second
	waitingMost         = 4
)

// waiting are the Secrets that wait for room in the budget of their namespace.
type waiting struct{ secrets *secrets }

// Run retries until ctx ends.
func (w waiting) Run(ctx context.Context) {
	wake.Every(ctx, waitingPollInterval, func() {
		for _, key := range w.secrets.set.Waiting(waitingMost) {
			namespace, name := key.Secret()
			for _, watch := range w.secrets.watches() {
				if watch.Follows(namespace, name) {
					w.secrets.troubles.Report("waiting secrets of namespace "+namespace, watch.Reread(ctx, namespace, name))
				}
			}
		}
	})
}
