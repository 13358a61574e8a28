// Package witnesses finds the Secrets that show sets of versions. The gates of a rotation
// wait for them.
package witnesses

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Config says which Secrets may be witnesses, and who knows about them.
type Config struct {
	// Namespaces has the sets, each with the namespaces that count for it. A set without
	// namespaces counts all.
	Namespaces map[string][]string
	Targets    *records.Set
	Cluster    *kube.Client
	Process    Process
	// Timeout returns the limit of one request.
	Timeout func() time.Duration
}

// Process knows the identities and watches of this process.
type Process interface {
	// Watches returns the present state of the watches on Secrets.
	Watches() []Watch
	// IdentityOf names the identity that serves a Secret; "" is also the name of the
	// default identity.
	IdentityOf(namespace, secret string) string
	// IdentitiesOf names the identities that serve Secrets of a namespace.
	IdentitiesOf(namespace string) []string
	// Client returns the client of an identity, or nil if no identity has the name now.
	Client(identity string) *conjur.Client
}

// Watch is the state of a watch on Secrets.
type Watch struct {
	Namespace  string   // "" means all namespaces
	Incomplete error    // why not all its Secrets are known
	Unread     []string // the namespaces that Syncer may not read
}

// Witnesses are the Secrets that show sets of versions. A Secret counts if this process
// delivered the set to it. If only an earlier process did, its identity must be permitted
// to read the set. A Secret's own metadata is only a claim (decision 034). It implements
// rotation.Targets.
type Witnesses struct {
	config Config

	mu        sync.Mutex
	earlier   map[targets.Key]map[string]targets.DeliveredSet // not yet delivered by this process
	counts    map[string]map[targets.Key]bool                 // set → Secrets that counted last
	unread    map[string]time.Time                            // namespace → unreadable since
	overSince map[string]time.Time                            // namespace → too full since
	rights    map[access]right
}

// New returns witnesses that have not been asked.
func New(config Config) *Witnesses {
	return &Witnesses{
		config: config, earlier: map[targets.Key]map[string]targets.DeliveredSet{},
		counts: map[string]map[targets.Key]bool{}, unread: map[string]time.Time{}, rights: map[access]right{},
	}
}

// Permits reports whether a namespace counts for a set, according to the configuration.
func (w *Witnesses) Permits(set, namespace string) bool {
	namespaces := w.config.Namespaces[set]
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}

// Counted reports whether a Secret showed a set in the last inspection.
func (w *Witnesses) Counted(set string, r records.Record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[set][r.Spec.Key]
}

// inspection is one look at the Secrets that show a set.
type inspection struct {
	witnesses *Witnesses
	set       string
	found     []rotation.Shown
	counts    map[targets.Key]bool
}

// Shown implements rotation.Targets.
func (w *Witnesses) Shown(ctx context.Context, set string) ([]rotation.Shown, error) {
	refused, known, err := w.refused()
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(w.config.Targets.Showing(set), func(record records.Record) bool {
		return !w.Permits(set, record.Spec.Secret.Namespace)
	})
	s := inspection{witnesses: w, set: set, counts: map[targets.Key]bool{}}
	overSince := w.overBudget()
	w.askRights(ctx, s.questions(all, refused, known, overSince))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for namespace, since := range refused {
		if !known[namespace] && w.mayShow(namespace, set) {
			s.blind(namespace, since, "Syncer may not read its Secrets")
		}
	}
	for namespace, since := range overSince {
		if w.mayShow(namespace, set) {
			s.blind(namespace, since, "it has more Secrets than namespaceMemory allows Syncer to follow")
		}
	}
	for _, record := range all {
		if err := s.inspectSecret(ctx, record, refused); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[set] = s.counts
	return s.found, nil
}

// refused returns the namespaces whose Secrets Syncer may not read, and since when. known
// contains those whose Secrets were all read before. The error says that other Secrets
// are not all known yet.
func (w *Witnesses) refused() (refused map[string]time.Time, known map[string]bool, err error) {
	refused, known = map[string]time.Time{}, map[string]bool{}
	for _, watch := range w.config.Process.Watches() {
		if watch.Incomplete != nil && len(watch.Unread) == 0 {
			return nil, nil, watch.Incomplete
		}
		for _, namespace := range watch.Unread {
			refused[namespace], known[namespace] = time.Now(), watch.Incomplete == nil && watch.Namespace != ""
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	remember(&w.unread, refused)
	return refused, known, nil
}

// overBudget returns the namespaces whose Secrets are not all known, because the budget has no
// room for them, and since when.
func (w *Witnesses) overBudget() map[string]time.Time {
	overSince := map[string]time.Time{}
	for _, namespace := range w.config.Targets.OverBudgetNamespaces() {
		overSince[namespace] = time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	remember(&w.overSince, overSince)
	return overSince
}

// remember gives the namespaces in now the times that they had before, and remembers now.
func remember(before *map[string]time.Time, now map[string]time.Time) {
	for namespace := range now {
		if since, known := (*before)[namespace]; known {
			now[namespace] = since
		}
	}
	*before = maps.Clone(now)
}

// questions returns the permissions that decide which Secrets show the set.
func (s *inspection) questions(all []records.Record, refused map[string]time.Time, known map[string]bool, overSince map[string]time.Time) (ask []access) {
	for namespace := range overSince {
		if s.witnesses.Permits(s.set, namespace) {
			for _, identity := range s.witnesses.config.Process.IdentitiesOf(namespace) {
				ask = append(ask, access{identity, s.set})
			}
		}
	}
	for namespace := range refused {
		if !known[namespace] && s.witnesses.Permits(s.set, namespace) {
			for _, identity := range s.witnesses.config.Process.IdentitiesOf(namespace) {
				ask = append(ask, access{identity, s.set})
			}
		}
	}
	for _, record := range all {
		if has, known := record.Status.Sets[s.set]; !known || has.Claimed || record.Status.Err != nil {
			ask = append(ask, access{s.witnesses.identityOf(record), s.set})
		}
	}
	return ask
}

// mayShow reports whether the Secrets of a namespace may show a set. An unknown
// permission counts as permitted.
func (w *Witnesses) mayShow(namespace, set string) bool {
	return w.Permits(set, namespace) && slices.ContainsFunc(w.config.Process.IdentitiesOf(namespace), func(identity string) bool {
		right := w.right(access{identity, set})
		return right.may || !right.known
	})
}

// inspectSecret records what one Secret shows.
func (s *inspection) inspectSecret(ctx context.Context, record records.Record, refused map[string]time.Time) error {
	namespace, status := record.Spec.Secret.Namespace, record.Status
	has, known := status.Sets[s.set]
	delivered := known && !has.Claimed
	if right := s.witnesses.right(access{s.witnesses.identityOf(record), s.set}); !delivered || status.Err != nil {
		if right.known && !right.may {
			return nil // its identity never had the permission, or lost it
		}
		if !delivered && !right.known {
			s.blind(namespace, right.since, "its identity does not get an answer whether it may read the set")
			return nil
		}
	}
	if !known && status.Version != "" {
		return nil // Syncer has read it, and it shows nothing
	}
	if !known {
		var was bool
		var err error
		has, was, err = s.witnesses.before(ctx, record.Spec, s.set)
		switch {
		case apierrors.IsForbidden(err):
			s.blind(namespace, time.Now(), "Syncer may not read its Secrets")
			return nil
		case err != nil:
			return err
		case !was && (status.Err != nil || !status.Proven.IsZero() || !names(record.Spec, s.set)):
			return nil // Syncer tried it, or need not try it, and it shows nothing
		}
	}
	s.counts[record.Spec.Key] = true
	shows := rotation.Shown{Namespace: namespace, Name: record.Spec.Secret.Name, Step: has.Step, Primary: has.Primary, Since: has.Since}
	if since, unread := refused[namespace]; unread {
		shows.Unread, shows.Since = "Syncer may not read it", since
	} else if apierrors.IsForbidden(status.Err) {
		shows.Unread, shows.Since = "Syncer may not write it", status.Trouble.Began
	}
	s.found = append(s.found, shows)
	return nil
}

// blind records that the versions in the Secrets of a namespace are unknown.
func (s *inspection) blind(namespace string, since time.Time, why string) {
	if !slices.ContainsFunc(s.found, func(other rotation.Shown) bool { return other.Name == "" && other.Namespace == namespace }) {
		s.found = append(s.found, rotation.Shown{Namespace: namespace, Unread: why, Since: since})
	}
}

// before returns what a Secret shows from the delivery of an earlier process. It reads
// the Secret once.
func (w *Witnesses) before(ctx context.Context, t *targets.Target, set string) (has targets.DeliveredSet, was bool, err error) {
	w.mu.Lock()
	sets, known := w.earlier[t.Key]
	w.mu.Unlock()
	if !known {
		ctx, cancel := context.WithTimeout(ctx, w.config.Timeout())
		defer cancel()
		about, err := w.config.Cluster.Metadata(ctx, t.Secret.Namespace, t.Secret.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return has, false, err
		}
		sets = kubesecrets.SetsOf(about)
		w.mu.Lock()
		w.earlier[t.Key] = sets
		w.mu.Unlock()
	}
	has, was = sets[set]
	return has, was, nil
}

// Since implements rotation.Targets.
func (w *Witnesses) Since(ctx context.Context, variables []string) (since time.Time, err error) {
	if _, _, err := w.refused(); err != nil {
		return since, err
	}
	for _, id := range variables {
		has := w.config.Targets.ByVariable(id)
		var ask []access
		for _, record := range has {
			ask = append(ask, access{w.identityOf(record), id})
		}
		w.askRights(ctx, ask)
		for i, record := range has {
			if !w.right(ask[i]).may {
				continue
			}
			about, err := w.config.Cluster.Metadata(ctx, record.Spec.Secret.Namespace, record.Spec.Secret.Name)
			switch made := about.CreationTimestamp.Time; {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			case err != nil:
				return since, err
			case since.IsZero() || made.Before(since):
				since = made
			}
		}
	}
	return since, nil
}

// names reports whether an entry of a Secret names a set.
func names(t *targets.Target, set string) bool {
	shows := func(e targets.Entry) bool { return e.IsSet() && e.Variable == set }
	return slices.ContainsFunc(t.Parts(), func(part *targets.Target) bool { return slices.ContainsFunc(part.Entries, shows) })
}
