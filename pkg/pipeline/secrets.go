package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/brief"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
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
	s.secrets.Drifted, s.secrets.Remark = s.drifted, p.troubles.Remark
	s.news = newNews(p, s.reference)
	for namespace, names := range watched(p.cfg.Kubernetes) {
		s.watches = append(s.watches, &sources.Secrets{
			Client:    p.host.cluster,
			Namespace: namespace,
			Names:     names,
			Known:     knownNamespaces(p.cfg),
			Interval:  secretsLook,
			Upsert:    s.upsert,
			Gone:      s.gone,
			Unread:    s.unreadable,
			Report:    p.troubles.Report,
			Remark:    p.troubles.Remark,
		})
	}
	return s
}

// knownNamespaces returns those that the configuration names, and our own.
func knownNamespaces(cfg *config.Config) []string {
	names := []string{cfg.Kubernetes.Namespace}
	for _, identity := range cfg.Identities {
		names = append(names, identity.Namespaces...)
	}
	slices.Sort(names)
	return slices.Compact(names)
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

// synced says whose Secrets are not all known.
func (s *secretsPlace) synced() error {
	for _, watch := range s.watches {
		if err := watch.Complete(); err != nil {
			return err
		}
	}
	return nil
}

// ready is satisfied with what may be read, if there is any.
func (s *secretsPlace) ready() (remarks []string, err error) {
	for _, watch := range s.watches {
		switch err := watch.Complete(); {
		case err == nil:
		case apierrors.IsForbidden(err):
			remarks = append(remarks, fmt.Sprintf("not served: the Secrets of namespace %q may not be read", watch.Namespace))
		default:
			return nil, err
		}
	}
	if len(remarks) > 0 && len(remarks) == len(s.watches) && len(s.keys()) == 0 {
		return nil, listed("no Secret may be read", remarks)
	}
	return brief.Some(remarks, brief.Names), nil
}

func (s *secretsPlace) held(l *lane, e variables.HoldEvent) { s.news.held(l, e) }

// reference refers to a Secret in Events.
func (s *secretsPlace) reference(key targets.Key) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(string(key), "secret/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	return kube.SecretReference(namespace, name, s.found[key])
}

func (s *secretsPlace) settled(l *lane, r workers.Result) { s.news.settled(l, r) }
