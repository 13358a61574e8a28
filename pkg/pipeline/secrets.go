package pipeline

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// secretsLook is the time between checks of Secrets that Syncer may read but not watch.
const secretsLook = 10 * time.Second

// secrets are the Kubernetes Secrets of some namespaces. The Secrets and the
// configuration define their content.
type secrets struct {
	*pipeline
	sink     *kubesecrets.Sink
	news     *news
	accounts *accounts
	fights   *fights
	parsing  sync.Mutex

	// The Secrets that a one-shot process could not read at first, and the reasons. Until
	// completed is true, only prime and complete use these fields.
	unread    []*sources.Secrets
	unreadFor error
	completed atomic.Bool
}

func newSecrets(p *pipeline) *secrets {
	s := &secrets{pipeline: p, sink: kubesecrets.New(p.host.cluster.Core)}
	s.sink.Remarker = p.troubles
	s.news, s.accounts = newNews(p), newAccounts(s)
	s.fights = newFights(s)
	return s
}

// watching returns the watches for a configuration. It keeps the existing watches that
// follow the same Secrets, and adds new ones.
func (s *secrets) watching(cfg *config.Config) (all []*sources.Secrets) {
	there := s.watches()
	for namespace, names := range cfg.Kubernetes.Watched() {
		if i := slices.IndexFunc(there, func(w *sources.Secrets) bool { return w.Namespace == namespace && slices.Equal(w.Names, names) }); i >= 0 {
			all = append(all, there[i])
			continue
		}
		all = append(all, &sources.Secrets{
			Client:      s.host.cluster,
			Namespace:   namespace,
			Names:       names,
			Known:       s.knownNamespaces,
			Interval:    secretsLook,
			Definitions: s.set.Budget / 8,
			Handler:     s,
			Reporter:    s.troubles,
		})
	}
	return all
}

func (s *secrets) watches() []*sources.Secrets { return s.wired.Load().watches }

// knownNamespaces returns the namespaces in the configuration and the namespace of the
// Pod.
func (s *secrets) knownNamespaces() []string {
	names := []string{s.config().Kubernetes.Namespace}
	for _, identity := range s.config().Identities {
		names = append(names, identity.Namespaces...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *secrets) sources() []source {
	all := []source{s.news}
	if s.config().Mode.OneShot() {
		return append(all, reloading{s})
	}
	all = append(all, s.fights)
	if s.config().Mode == config.ModeStandalone {
		all = append(all, s.accounts, waiting{s})
	}
	for _, watch := range s.watches() {
		all = append(all, watch)
	}
	if r := s.wired.Load().rotates; r != nil {
		all = append(all, r)
	}
	return append(all, s.texts.sources()...)
}

// synced returns the namespaces whose Secrets are not all known.
func (s *secrets) synced() error {
	for _, watch := range s.watches() {
		if err := watch.Complete(); err != nil {
			return err
		}
	}
	return nil
}

// ready returns an error if some readable Secrets are not known yet. It only remarks on
// namespaces that Syncer may not read, unless no Secret at all may be read.
func (s *secrets) ready() (remarks []string, err error) {
	for _, watch := range s.watches() {
		switch err := watch.Complete(); {
		case err == nil:
		case apierrors.IsForbidden(err):
			remarks = append(remarks, fmt.Sprintf("not served: the Secrets of namespace %q may not be read", watch.Namespace))
		default:
			return nil, err
		}
	}
	if len(remarks) > 0 && len(remarks) == len(s.watches()) && len(s.keys()) == 0 {
		return nil, listed("no Secret may be read", remarks)
	}
	return brief.Some(remarks, brief.Names), nil
}

// newSet makes a set in which each tenant's Secrets have a budget.
func newSet(cfg *config.Config) *records.Set {
	if cfg.Mode != config.ModeStandalone {
		return &records.Set{}
	}
	return &records.Set{Budget: cfg.Kubernetes.NamespaceMemory << 20}
}
