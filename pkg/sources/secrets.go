package sources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/kube"
)

// Change tells what of a Kubernetes Secret is not as it was last seen.
type Change int

const (
	// Defined: the Secret is new, also when there was one of its name before,
	// or what it says of its content has changed, or its type, or whether it
	// is immutable.
	Defined Change = iota + 1
	// Altered: the definition is as it was, but data are not.
	Altered
	// Touched: neither; somebody changed what is no concern of ours.
	Touched
)

// Secrets watches the Kubernetes Secrets that are to be filled, in one
// namespace or in all. The fields from Client to Report are needed unless they
// say otherwise; each of the functions is called by one goroutine at a time.
type Secrets struct {
	Client *kube.Client
	// Namespace is the one; "" is all, and goes without Names.
	Namespace string
	// Names lists the Secrets; none: those with the label kube.ManagedLabel.
	Names []string
	// Known lists namespaces to read one by one when neither all Secrets nor
	// the list of namespaces may be read; only for Namespace "".
	Known []string
	// Interval is the time between looks at what may not be watched.
	Interval time.Duration
	// Upsert hears of a Secret that is new or was changed.
	Upsert func(kube.Source, Change)
	// Gone hears of a Secret that is no longer there, or no longer has the
	// label, and of one in Names that is not there when first looked for.
	Gone func(namespace, name string)
	// Unread hears, once, of one in Names that could not be read so far.
	Unread func(namespace, name string, err error)
	Report Report

	synced   atomic.Bool
	troubles folded // by name, or "" for the label

	mu     sync.Mutex
	known  map[types.NamespacedName]sighting // what was told last
	unread map[string]bool                   // the Names that Unread heard of
}

// sighting is what tells one state of a Secret from another. The zero sighting
// is that of a Secret that is not there.
type sighting struct {
	version     string
	definition  [sha256.Size]byte
	fingerprint [sha256.Size]byte
}

// Synced tells whether all that is there has been told at least once.
func (s *Secrets) Synced() bool { return s.synced.Load() }

// Refused tells whether a right that the watch needs is missing. Without the
// right to get or list as well, Synced does not come about before it is granted.
func (s *Secrets) Refused() bool { return s.troubles.any(apierrors.IsForbidden) }

// Run watches until ctx ends, and returns when all it started has. Whatever
// breaks the watch is reported, and overcome as soon as it is mended.
func (s *Secrets) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	if len(s.Names) == 0 {
		s.follow("").run(ctx)
	}
	for _, name := range s.Names {
		wg.Go(func() { s.follow(name).run(ctx) })
	}
}

// Load reads the Secrets once and tells what is there, and which of Names are
// not. The error joins what could not be read.
func (s *Secrets) Load(ctx context.Context) error {
	if len(s.Names) > 0 {
		var errs []error
		for _, name := range s.Names {
			errs = append(errs, s.read(ctx, name))
		}
		return errors.Join(errs...)
	}
	var all []kube.Source
	err := s.Client.Sources(ctx, s.Namespace, func(source kube.Source) { all = append(all, source) })
	if err != nil {
		return err
	}
	s.replace(s.Namespace, "", all)
	return nil
}

// read tells of one of the Names.
func (s *Secrets) read(ctx context.Context, name string) error {
	source, err := s.Client.Source(ctx, s.Namespace, name)
	switch {
	case err == nil:
		s.replace(s.Namespace, name, []kube.Source{source})
	case apierrors.IsNotFound(err):
		s.replace(s.Namespace, name, nil)
	default:
		s.locked(func() { s.fail(name, err) })
		return err
	}
	return nil
}

// fail tells of one of the Names of which nothing is known.
func (s *Secrets) fail(name string, err error) {
	if _, told := s.known[types.NamespacedName{Namespace: s.Namespace, Name: name}]; told || s.unread[name] {
		return
	}
	if s.unread == nil {
		s.unread = map[string]bool{}
	}
	s.unread[name] = true
	s.Unread(s.Namespace, name, err)
}

// follow makes the watch of one name, or of the label for "".
func (s *Secrets) follow(name string) *follow {
	watch := s.Client.WatchSecrets(s.Namespace, name, kube.Handler[kube.Source]{
		Replace: func(all []kube.Source) { s.replace(s.Namespace, name, all) },
		Put:     func(source kube.Source) { s.locked(func() { s.put(source) }) },
		Delete: func(namespace, gone string) {
			s.locked(func() { s.remove(types.NamespacedName{Namespace: namespace, Name: gone}) })
		},
		Well: func() { s.trouble(name, nil) },
	})
	f := &follow{watch: watch.Run, interval: s.Interval, failed: func(err error) { s.trouble(name, err) }}
	switch {
	case name != "":
		f.look = func(ctx context.Context) error { return s.read(ctx, name) }
	case s.Namespace == "":
		f.look = s.readEach
	}
	return f
}

func (s *Secrets) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// replace takes all that there is of a name, or of the label for "", in a
// namespace, or in all for "".
func (s *Secrets) replace(namespace, name string, all []kube.Source) {
	slices.SortFunc(all, func(a, b kube.Source) int { return compare(keyOf(a), keyOf(b)) })
	s.locked(func() {
		seen := map[types.NamespacedName]bool{}
		for _, source := range all {
			seen[keyOf(source)] = true
			s.put(source)
		}
		for _, key := range slices.SortedFunc(maps.Keys(s.known), compare) {
			if !seen[key] && (name == "" || name == key.Name) && (namespace == "" || namespace == key.Namespace) {
				s.remove(key)
			}
		}
		named := types.NamespacedName{Namespace: s.Namespace, Name: name}
		if _, told := s.known[named]; name != "" && !told {
			s.remove(named)
		}
		s.settle()
	})
}

// settle finds out whether all has been told once.
func (s *Secrets) settle() {
	for _, name := range s.Names {
		if _, told := s.known[types.NamespacedName{Namespace: s.Namespace, Name: name}]; !told {
			return
		}
	}
	s.synced.Store(true)
}

// put tells of a Secret that is there.
func (s *Secrets) put(source kube.Source) {
	key := keyOf(source)
	now := sighting{source.ResourceVersion, definition(source), source.Fingerprint}
	before := s.known[key]
	change := Touched
	switch {
	case now.version == before.version:
		return
	case now.definition != before.definition:
		change = Defined
	case now.fingerprint != before.fingerprint:
		change = Altered
	}
	if s.known == nil {
		s.known = map[types.NamespacedName]sighting{}
	}
	s.known[key] = now
	s.Upsert(source, change)
}

// remove tells of a Secret that is not there.
func (s *Secrets) remove(key types.NamespacedName) {
	before, told := s.known[key]
	if told && before == (sighting{}) {
		return
	}
	if slices.Contains(s.Names, key.Name) {
		if s.known == nil {
			s.known = map[types.NamespacedName]sighting{}
		}
		s.known[key] = sighting{}
	} else {
		delete(s.known, key)
	}
	s.Gone(key.Namespace, key.Name)
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func keyOf(source kube.Source) types.NamespacedName {
	return types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
}

// definition is a digest of what decides about the content, and of the
// Secret's identity: one that was made anew is another.
func definition(source kube.Source) [sha256.Size]byte {
	text, _ := json.Marshal(struct { // strings, bytes and a bool always can be
		UID                 types.UID
		Labels, Annotations map[string]string
		HasMap              bool
		Map                 []byte
		Type                string
		Immutable           bool
	}{source.UID, source.Labels, source.Annotations, source.HasMap, []byte(source.Map), string(source.Type), source.Immutable})
	return sha256.Sum256(text)
}

// trouble notes how it goes with the watch of one name, or of the label for "".
func (s *Secrets) trouble(name string, err error) {
	subject := "watch of secrets in all namespaces"
	if s.Namespace != "" {
		subject = "watch of secrets in namespace " + s.Namespace
	}
	s.troubles.note(s.Report, subject, name, err)
}
