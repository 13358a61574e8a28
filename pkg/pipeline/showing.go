package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// shown tracks the Secrets that show sets of versions. A Secret counts if this process
// delivered the set to it. If only an earlier process did, its identity must be permitted
// to read the set. A Secret's own metadata is only a claim (decision 034).
type shown struct {
	permits map[string][]string // :: set → the namespaces that count; empty means all

	mu      sync.Mutex
	earlier map[targets.Key]map[string]targets.DeliveredSet // not yet delivered by this process
	counts  map[string]map[targets.Key]bool                 // :: set → Secrets that counted last
	unread  map[string]time.Time                            // :: namespace → unreadable since
	crowds  map[string]time.Time                            // :: namespace → too full since
	rights  map[access]right
}

func newShown(sets []config.RotatedSet) *shown {
	s := &shown{
		permits: map[string][]string{}, earlier: map[targets.Key]map[string]targets.DeliveredSet{},
		counts: map[string]map[targets.Key]bool{}, unread: map[string]time.Time{}, rights: map[access]right{},
	}
	for _, set := range sets {
		s.permits[set.Set] = set.Confirm.Namespaces
	}
	return s
}

// permitted reports whether a namespace counts for a set, according to the configuration.
func (s *shown) permitted(set, namespace string) bool {
	namespaces := s.permits[set]
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}

// counted reports whether a Secret showed a set in the last inspection.
func (s *shown) counted(set string, r records.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[set][r.Spec.Key]
}

// inspection is one look at the Secrets that show a set.
type inspection struct {
	rotating *rotating
	set      string
	found    []rotation.Shown
	counts   map[targets.Key]bool
}

// Shown implements rotation.Targets.
func (r *rotating) Shown(ctx context.Context, set string) ([]rotation.Shown, error) {
	refused, known, err := r.refused()
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(r.of.set.Showing(set), func(record records.Record) bool {
		return !r.shown.permitted(set, record.Spec.Secret.Namespace)
	})
	s := inspection{rotating: r, set: set, counts: map[targets.Key]bool{}}
	crowds := r.crowds()
	r.askRights(ctx, s.questions(all, refused, known, crowds))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for namespace, since := range refused {
		if !known[namespace] && r.mayShow(namespace, set) {
			s.blind(namespace, since, "Syncer may not read its Secrets")
		}
	}
	for namespace, since := range crowds {
		if r.mayShow(namespace, set) {
			s.blind(namespace, since, "it has more Secrets than namespaceMemory allows Syncer to follow")
		}
	}
	for _, record := range all {
		if err := s.look(ctx, record, refused); err != nil {
			return nil, err
		}
	}
	r.shown.mu.Lock()
	defer r.shown.mu.Unlock()
	r.shown.counts[set] = s.counts
	return s.found, nil
}

// refused returns the namespaces whose Secrets Syncer may not read, and since when. known
// contains those whose Secrets were all read before. The error says that other Secrets
// are not all known yet.
func (r *rotating) refused() (refused map[string]time.Time, known map[string]bool, err error) {
	refused, known = map[string]time.Time{}, map[string]bool{}
	s := r.shown
	for _, watch := range r.of.secrets.watches() {
		incomplete, namespaces := watch.Complete(), watch.Unread()
		if incomplete != nil && len(namespaces) == 0 {
			return nil, nil, incomplete
		}
		for _, namespace := range namespaces {
			refused[namespace], known[namespace] = time.Now(), incomplete == nil && watch.Namespace != ""
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	remember(&s.unread, refused)
	return refused, known, nil
}

// crowds returns the namespaces whose Secrets are not all known, because the budget has no
// room for them, and since when.
func (r *rotating) crowds() map[string]time.Time {
	crowds := map[string]time.Time{}
	for _, namespace := range r.of.set.Crowds() {
		crowds[namespace] = time.Now()
	}
	r.shown.mu.Lock()
	defer r.shown.mu.Unlock()
	remember(&r.shown.crowds, crowds)
	return crowds
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
func (s *inspection) questions(all []records.Record, refused map[string]time.Time, known map[string]bool, crowds map[string]time.Time) (ask []access) {
	for namespace := range crowds {
		if s.rotating.shown.permitted(s.set, namespace) {
			for _, identity := range s.rotating.identitiesOf(namespace) {
				ask = append(ask, access{identity, s.set})
			}
		}
	}
	for namespace := range refused {
		if !known[namespace] && s.rotating.shown.permitted(s.set, namespace) {
			for _, identity := range s.rotating.identitiesOf(namespace) {
				ask = append(ask, access{identity, s.set})
			}
		}
	}
	for _, record := range all {
		if has, known := record.Status.Sets[s.set]; !known || has.Claimed || record.Status.Err != nil {
			ask = append(ask, access{s.rotating.identityOf(record), s.set})
		}
	}
	return ask
}

// mayShow reports whether the Secrets of a namespace may show a set. An unknown
// permission counts as permitted.
func (r *rotating) mayShow(namespace, set string) bool {
	return r.shown.permitted(set, namespace) && slices.ContainsFunc(r.identitiesOf(namespace), func(identity string) bool {
		right := r.shown.right(access{identity, set})
		return right.may || !right.known
	})
}

// look records what one Secret shows.
func (s *inspection) look(ctx context.Context, record records.Record, refused map[string]time.Time) error {
	namespace, status := record.Spec.Secret.Namespace, record.Status
	has, known := status.Sets[s.set]
	delivered := known && !has.Claimed
	if right := s.rotating.shown.right(access{s.rotating.identityOf(record), s.set}); !delivered || status.Err != nil {
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
		has, was, err = s.rotating.before(ctx, record.Spec, s.set)
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
func (r *rotating) before(ctx context.Context, t *targets.Target, set string) (has targets.DeliveredSet, was bool, err error) {
	s := r.shown
	s.mu.Lock()
	sets, known := s.earlier[t.Key]
	s.mu.Unlock()
	if !known {
		ctx, cancel := context.WithTimeout(ctx, r.of.settings.config().Conjur.HTTPTimeout)
		defer cancel()
		about, err := r.of.secrets.cluster.Metadata(ctx, t.Secret.Namespace, t.Secret.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return has, false, err
		}
		sets = kubesecrets.SetsOf(about)
		s.mu.Lock()
		s.earlier[t.Key] = sets
		s.mu.Unlock()
	}
	has, was = sets[set]
	return has, was, nil
}

// Since implements rotation.Targets.
func (r *rotating) Since(ctx context.Context, variables []string) (since time.Time, err error) {
	if _, _, err := r.refused(); err != nil {
		return since, err
	}
	for _, id := range variables {
		has := r.of.set.ByVariable(id)
		var ask []access
		for _, record := range has {
			ask = append(ask, access{r.identityOf(record), id})
		}
		r.askRights(ctx, ask)
		for i, record := range has {
			if !r.shown.right(ask[i]).may {
				continue
			}
			about, err := r.of.secrets.cluster.Metadata(ctx, record.Spec.Secret.Namespace, record.Spec.Secret.Name)
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
	shows := func(e targets.Entry) bool { return e.Set() && e.Variable == set }
	return slices.ContainsFunc(t.Parts(), func(part *targets.Target) bool { return slices.ContainsFunc(part.Entries, shows) })
}
