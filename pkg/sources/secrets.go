package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/kube"
)

// Secrets watches the Kubernetes Secrets that are to be filled, in one
// namespace or in all. The fields from Client to Remark are needed unless they
// say otherwise; Upsert, Gone and Unread are called one at a time.
type Secrets struct {
	Client *kube.Client
	// Namespace is the one; "" is all, and goes without Names.
	Namespace string
	// Names lists the Secrets; none: those with the label kube.ManagedLabel.
	Names []string
	// Known returns namespaces to read one by one when neither all Secrets nor
	// the list of namespaces may be read; only for Namespace "".
	Known func() []string
	// Interval is the time between looks at what may not be watched.
	Interval time.Duration
	// Upsert is called with a Secret that is new or was changed. It is
	// redefined when it was not there before, was made anew, or says something
	// else of its content.
	Upsert func(s *kube.Secret, redefined bool)
	// Gone is called with a Secret that is no longer there, or no longer has
	// the label, and with one of Names that is not there when first looked for.
	Gone func(namespace, name string)
	// Unread is called, once, with one of Names that could not be read so far.
	Unread func(namespace, name string, err error)
	// Report is called with what keeps the Secrets from being read or watched,
	// Remark when they may be read, but not watched.
	Report, Remark Report

	once     sync.Once
	watches  []*kube.Watch[*kube.Secret] // one a name, or one for the label
	troubles folded                      // by name, or "" for the label

	mu       sync.Mutex       // held while Upsert, Gone or Unread is called
	failures map[string]error // :: name → why nothing can be read of it
	unread   map[string]bool  // the Names that Unread was called with
}

// Prime reads the Secrets once, and calls Upsert and Gone with what is not as
// it was. It may be called again, until Run is.
func (s *Secrets) Prime(ctx context.Context) {
	s.once.Do(s.prepare)
	var errs []error
	for _, w := range s.watches {
		err := w.Look(ctx)
		s.fail(w, err, err != nil)
		errs = append(errs, err)
	}
	if ctx.Err() == nil {
		s.Report("secrets of "+s.Namespace, errors.Join(errs...))
	}
}

// Complete returns nil once Upsert and Gone have been called with all that there
// is. Its error wraps why they were not, if that is known: apierrors.IsForbidden
// says that a right is missing.
func (s *Secrets) Complete() error {
	s.once.Do(s.prepare)
	complete, whys := true, []error(nil)
	for _, w := range s.watches {
		if !w.Synced() {
			complete = false
			s.locked(func() { whys = append(whys, s.failures[w.Name]) })
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

// Run watches until ctx ends, and returns when all it started has. Whatever
// breaks the watch is reported, and overcome as soon as it is mended. It is
// called once.
func (s *Secrets) Run(ctx context.Context) {
	s.once.Do(s.prepare)
	var wg sync.WaitGroup
	for _, w := range s.watches {
		wg.Go(func() { w.Run(ctx) })
	}
	wg.Wait()
}

// Again calls Upsert, Gone and Unread as if what they were called with were
// new: what they make of it may be something else by now.
func (s *Secrets) Again() {
	s.once.Do(s.prepare)
	for _, w := range s.watches {
		s.locked(func() {
			stored := w.Stored()
			for _, secret := range stored {
				s.Upsert(secret, true)
			}
			switch {
			case w.Name == "" || len(stored) > 0:
			case w.Synced():
				s.Gone(w.Namespace, w.Name)
			case s.unread[w.Name]:
				s.Unread(w.Namespace, w.Name, s.failures[w.Name])
			}
		})
	}
}

// Follows reports whether a Secret is followed if it has the label.
func (s *Secrets) Follows(namespace, name string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && (len(s.Names) == 0 || slices.Contains(s.Names, name))
}

func (s *Secrets) prepare() {
	s.failures, s.unread = map[string]error{}, map[string]bool{}
	names := s.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		s.watches = append(s.watches, s.watch(name))
	}
}

// watch makes the watch of one name, or of the label for "".
func (s *Secrets) watch(name string) (w *kube.Watch[*kube.Secret]) {
	subject := "watch of secrets in all namespaces"
	if s.Namespace != "" {
		subject = "watch of secrets in namespace " + s.Namespace
	}
	w = s.Client.WatchSecrets(kube.Selection{Namespace: s.Namespace, Name: name, Known: s.Known, Interval: s.Interval}, kube.Handler[*kube.Secret]{
		Put: func(before, now *kube.Secret) {
			s.locked(func() { s.Upsert(now, before == nil || !sameDefinition(before, now)) })
		},
		Gone: func(namespace, name string) { s.locked(func() { s.Gone(namespace, name) }) },
		Report: func(err error) {
			s.troubles.note(s.Report, s.Remark, subject, name, trouble{err: err})
			s.fail(w, err, apierrors.IsForbidden(err))
		},
		Remark: func(err error) { s.troubles.note(s.Report, s.Remark, subject, name, trouble{err: err, limited: true}) },
	})
	return w
}

// fail notes why nothing can be read of what a watch is for; nil: it can.
func (s *Secrets) fail(w *kube.Watch[*kube.Secret], err error, unread bool) {
	s.locked(func() {
		s.failures[w.Name] = err
		if unread && w.Name != "" && !w.Synced() && !s.unread[w.Name] {
			s.unread[w.Name] = true
			s.Unread(w.Namespace, w.Name, err)
		}
	})
}

func (s *Secrets) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// sameDefinition reports whether two states of a Secret are of the same one and
// say the same of its content.
func sameDefinition(a, b *kube.Secret) bool {
	return a.UID == b.UID && a.HasMap == b.HasMap && a.Map == b.Map && maps.Equal(a.Annotations, b.Annotations)
}
