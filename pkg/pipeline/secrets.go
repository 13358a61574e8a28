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

// secretsLook is the time between looks at Secrets that may be read but not
// watched.
const secretsLook = 10 * time.Second

// secrets is the Kubernetes Secrets of some namespaces. What belongs there is
// said by the Secrets themselves, and by the configuration.
type secrets struct {
	*pipeline
	sink     *kubesecrets.Sink
	news     *news
	accounts *accounts
	fights   *fights
	parsing  sync.Mutex

	// What a one-shot process could not read at first, and why; until it is
	// completed, nobody else reads that.
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

// watching returns the watches that a configuration asks for: those that there
// are, as far as they follow the same Secrets, and new ones.
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

// knownNamespaces returns those that the configuration names, and our own.
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

// synced says whose Secrets are not all known.
func (s *secrets) synced() error {
	for _, watch := range s.watches() {
		if err := watch.Complete(); err != nil {
			return err
		}
	}
	return nil
}

// ready is satisfied with what may be read, if there is any.
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

// newSet makes a set in which the Secrets of many tenants have budgets.
func newSet(cfg *config.Config) *records.Set {
	if cfg.Mode != config.ModeStandalone {
		return &records.Set{}
	}
	return &records.Set{Budget: cfg.Kubernetes.NamespaceMemory << 20}
}
