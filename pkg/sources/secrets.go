package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/kube"
)

// SecretHandler receives the events of Secrets. Upsert, Gone and Unread are called one at
// a time.
type SecretHandler interface {
	// Upsert is called with a new or changed Secret. redefined means that it did not
	// exist before, was created again, or that its definition changed.
	Upsert(s *kube.Secret, redefined bool)
	// Gone is called with a Secret that no longer exists or no longer has the label. It
	// is also called with one of the names that does not exist at the first read.
	Gone(namespace, name string)
	// Unread is called, once, with one of the names that could not be read so far.
	Unread(namespace, name string, err error)
}

// Secrets watches the Kubernetes Secrets that Syncer fills, in one namespace or in all.
// The exported fields are required unless they say otherwise.
type Secrets struct {
	Client *kube.Client
	// Namespace is the watched namespace; "" means all, and requires empty Names.
	Namespace string
	// Names lists the Secrets; none means those with the label
	// targets.ManagedLabel.
	Names []string
	// Known returns the namespaces to read one by one, if both all Secrets and the list
	// of namespaces are unreadable. It applies only to Namespace "".
	Known func() []string
	// Definitions is the maximum size of the definitions in one namespace, in bytes; see
	// kube.Selection.
	Definitions int
	// Interval is the time between reads of Secrets that may not be watched.
	Interval time.Duration
	Handler  SecretHandler
	// See, if not nil, is called with each Secret before its values are wiped.
	See func(*corev1.Secret)
	// Reporter is called with the reasons why Secrets cannot be read or watched. It
	// remarks if they may be read but not watched.
	Reporter Remarker

	once     sync.Once
	watches  []*secretWatch // one for each name, or one for the label
	troubles watchTroubles  // by name, or "" for the label

	mu sync.Mutex // held while Upsert, Gone or Unread runs
}

// secretWatch watches one name, or the label for "".
type secretWatch struct {
	*kube.Watch[*kube.Secret]
	all *Secrets

	failure error // why nothing can be read
	unread  bool  // Unread was called
}

// Prime reads the Secrets once and calls the handler with the changed ones. It may be
// called several times before Run.
func (s *Secrets) Prime(ctx context.Context) {
	s.once.Do(s.prepare)
	var errs []error
	for _, w := range s.watches {
		err := w.Look(ctx)
		w.fail(err, err != nil)
		errs = append(errs, err)
	}
	if ctx.Err() == nil {
		s.Reporter.Report("secrets of "+s.Namespace, errors.Join(errs...))
	}
}

// Complete returns nil after Upsert and Gone have been called with all Secrets. Otherwise
// the error wraps the reason, if known: apierrors.IsForbidden means that a right is
// missing.
func (s *Secrets) Complete() error {
	s.once.Do(s.prepare)
	complete, whys := true, []error(nil)
	for _, w := range s.watches {
		if !w.Synced() {
			complete = false
			s.locked(func() { whys = append(whys, w.failure) })
		}
	}
	if complete {
		return nil
	}
	err := fmt.Errorf("the Secrets of namespace %q are not all known yet", s.Namespace)
	if why := errors.Join(whys...); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// Unread returns the namespaces whose Secrets may not be read now.
func (s *Secrets) Unread() (namespaces []string) {
	s.once.Do(s.prepare)
	for _, w := range s.watches {
		var why error
		s.locked(func() { why = w.failure })
		switch {
		case !apierrors.IsForbidden(why):
		case s.Namespace == "":
			return kube.Refused(why)
		default:
			return []string{s.Namespace}
		}
	}
	return nil
}

// Run watches until ctx ends. It returns after everything that it started has stopped.
// Errors of the watch are reported, and the watch recovers as soon as the cause is fixed.
// Run may be called only once.
func (s *Secrets) Run(ctx context.Context) {
	s.once.Do(s.prepare)
	var wg sync.WaitGroup
	for _, w := range s.watches {
		wg.Go(func() { w.Run(ctx) })
	}
	wg.Wait()
}

// Again repeats the calls of Upsert, Gone and Unread as if their arguments were new,
// because their effect may be different now.
func (s *Secrets) Again() {
	s.once.Do(s.prepare)
	for _, w := range s.watches {
		s.locked(func() {
			stored := w.Stored()
			for _, secret := range stored {
				s.Handler.Upsert(secret, true)
			}
			switch {
			case w.Name == "" || len(stored) > 0:
			case w.Synced():
				s.Handler.Gone(w.Namespace, w.Name)
			case w.unread:
				s.Handler.Unread(w.Namespace, w.Name, w.failure)
			}
		})
	}
}

// Reread calls Upsert again with a Secret that had no room before. If its definition was
// dropped, it is read again.
func (s *Secrets) Reread(ctx context.Context, namespace, name string) error {
	for _, w := range s.watches {
		stored, there := w.Find(namespace, name)
		if !there {
			continue
		}
		found := stored
		if _, overBudget := stored.Dropped(); overBudget {
			var err error
			found, err = s.Client.Secret(ctx, namespace, name)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
		}
		s.locked(func() {
			if now, there := w.Find(namespace, name); there && now.ResourceVersion == found.ResourceVersion {
				s.Handler.Upsert(found, true)
			}
		})
	}
	return nil
}

// Follows reports whether a Secret is followed if it has the label.
func (s *Secrets) Follows(namespace, name string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && (len(s.Names) == 0 || slices.Contains(s.Names, name))
}

func (s *Secrets) prepare() {
	names := s.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		w := &secretWatch{all: s}
		w.Watch = s.Client.WatchSecrets(kube.Selection{Namespace: s.Namespace, Name: name, Known: s.Known, Definitions: s.Definitions, Interval: s.Interval}, s.See, w)
		s.watches = append(s.watches, w)
	}
}

func (w *secretWatch) Put(before, now *kube.Secret) {
	w.all.locked(func() { w.all.Handler.Upsert(now, before == nil || !sameDefinition(before, now)) })
}

func (w *secretWatch) Gone(namespace, name string) {
	w.all.locked(func() { w.all.Handler.Gone(namespace, name) })
}

func (w *secretWatch) Report(err error) {
	w.fail(err, apierrors.IsForbidden(err)) // before the report: its receiver may call Complete
	w.recordTrouble(trouble{err: err})
}

func (w *secretWatch) Remark(err error) {
	w.fail(nil, false)
	w.recordTrouble(trouble{err: err, limited: true})
}

func (w *secretWatch) recordTrouble(t trouble) {
	subject := "watch of secrets in all namespaces"
	if w.Namespace != "" {
		subject = "watch of secrets in namespace " + w.Namespace
	}
	w.all.troubles.recordTrouble(w.all.Reporter, subject, w.Name, t)
}

// fail records why nothing can be read; nil means that reading works.
func (w *secretWatch) fail(err error, unread bool) {
	w.all.locked(func() {
		w.failure = err
		if unread && w.Name != "" && !w.Synced() && !w.unread {
			w.unread = true
			w.all.Handler.Unread(w.Namespace, w.Name, err)
		}
	})
}

func (s *Secrets) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// sameDefinition reports whether two states belong to the same Secret and have the same
// definition.
func sameDefinition(a, b *kube.Secret) bool {
	was, had := a.ConjurMap()
	is, has := b.ConjurMap()
	before, _ := a.Dropped()
	now, overBudget := b.Dropped()
	return a.UID == b.UID && !overBudget && before == now && had == has && was == is && maps.Equal(a.Annotations, b.Annotations)
}
