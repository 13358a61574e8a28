package sources

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
)

// mapSpace follows the ConfigMaps in use of one namespace. It uses one watch for all of
// them. If a role permits watching only named ConfigMaps, it uses one watch for each.
// ConfigMaps that may not be watched are polled.
type mapSpace struct {
	all       *ConfigMaps
	namespace string
	changed   wake.Wake
	stop      context.CancelFunc
	done      chan struct{}

	// The mutex of all guards these fields. Only run changes watches.
	used    map[targets.ConfigMapKey]bool
	over    map[targets.ConfigMapKey]bool // in excess of targets.MaxTemplates
	watches map[string]*mapWatch          // by name; "": the watch for all

	looked map[string]bool // names with a recorded state; only run uses it
}

// mapWatch is one watch.
type mapWatch struct {
	*kube.Watch[*metav1.PartialObjectMetadata]
	stop context.CancelFunc
	done chan struct{}
}

// start starts to follow a namespace. The caller holds the lock.
func (c *ConfigMaps) start(ctx context.Context, namespace string) *mapSpace {
	ctx, stop := context.WithCancel(ctx)
	s := &mapSpace{all: c, namespace: namespace, stop: stop, done: make(chan struct{}), watches: map[string]*mapWatch{}}
	if c.spaces == nil {
		c.spaces = map[string]*mapSpace{}
	}
	c.spaces[namespace] = s
	go func() {
		defer close(s.done)
		s.run(ctx)
	}()
	return s
}

// use sets the templates in use. Templates that were already in use stay, and others are
// added while there is room. It returns the templates that have room now but had none
// before. The caller holds the lock.
func (s *mapSpace) use(keys []targets.ConfigMapKey) (room []targets.ConfigMapKey) {
	c, before, over := s.all, s.used, s.over
	s.used, s.over = map[targets.ConfigMapKey]bool{}, map[targets.ConfigMapKey]bool{}
	for _, key := range keys {
		if before[key] {
			s.used[key] = true
		}
	}
	for _, key := range keys {
		switch {
		case s.used[key]:
		case len(s.used) == targets.MaxTemplates:
			s.over[key] = true
		default:
			s.used[key] = true
			if over[key] {
				room = append(room, key)
			}
		}
	}
	for name, texts := range c.given {
		maps.DeleteFunc(texts, func(key string, _ templateText) bool {
			return name.Namespace == s.namespace && !s.used[targets.ConfigMapKey{Namespace: s.namespace, Name: name.Name, Key: key}]
		})
		if len(texts) == 0 {
			delete(c.given, name)
		}
	}
	s.changed.Rouse()
	return room
}

// live reports whether a change of a ConfigMap would have been noticed. The caller holds
// the lock.
func (s *mapSpace) live(name string) bool {
	for _, watched := range []string{"", name} {
		if w := s.watches[watched]; w != nil && w.Live() {
			return true
		}
	}
	return false
}

// run follows the namespace until ctx ends.
func (s *mapSpace) run(ctx context.Context) {
	tick := time.NewTicker(s.all.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-s.changed.C(): // also at the start
		case <-tick.C:
		}
		s.follow(ctx)
	}
	for name := range s.watches {
		s.end(name)
	}
	s.forgetUnpolled(nil)
}

// forgetUnpolled removes the recorded states of names that are no longer polled.
func (s *mapSpace) forgetUnpolled(looked map[string]bool) {
	for name := range s.looked {
		if !looked[name] {
			s.recordTrouble(name, trouble{})
		}
	}
	s.looked = looked
}

// follow watches or polls the ConfigMaps in use.
func (s *mapSpace) follow(ctx context.Context) {
	names := map[string]bool{}
	s.all.mu.Lock()
	for key := range s.used {
		names[key.Name] = true
	}
	s.all.mu.Unlock()
	whole := s.watch(ctx, "") == nil
	for name := range s.watches {
		if name != "" && (whole || !names[name]) {
			s.end(name)
		}
	}
	looked := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if whole {
			break
		}
		if refusal := s.watch(ctx, name); refusal != nil {
			s.readUnwatched(ctx, name, refusal)
			looked[name] = true
		}
	}
	s.forgetUnpolled(looked)
}

// watch starts a watch for a ConfigMap, "" for all, unless that is forbidden.
func (s *mapSpace) watch(ctx context.Context, name string) (refusal error) {
	if w := s.watches[name]; w != nil && !w.Polling() {
		return nil
	}
	s.end(name)
	selection := kube.Selection{Namespace: s.namespace, Name: name, Interval: s.all.Interval}
	if err := s.all.Client.TryWatchingConfigMaps(ctx, selection); apierrors.IsForbidden(err) {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &mapWatch{stop: stop, done: make(chan struct{})}
	w.Watch = s.all.Client.WatchConfigMaps(selection, s.all.saw, mapHandler{s, name})
	s.all.mu.Lock()
	s.watches[name] = w
	s.all.mu.Unlock()
	go func() {
		defer close(w.done)
		var wg sync.WaitGroup
		wg.Go(func() { w.Run(ctx) })
		select {
		case <-w.Listed():
			s.missing(w)
		case <-ctx.Done():
		}
		wg.Wait()
	}()
	return nil
}

// missing finds the ConfigMaps that do not exist although workers have texts of them.
func (s *mapSpace) missing(w *mapWatch) {
	s.all.mu.Lock()
	var gone []types.NamespacedName
	for name := range s.all.given {
		if _, there := w.Find(name.Namespace, name.Name); !there && name.Namespace == s.namespace && (w.Name == "" || w.Name == name.Name) {
			gone = append(gone, name)
		}
	}
	s.all.mu.Unlock()
	for _, name := range gone {
		s.all.saw(name, nil)
	}
}

// end ends a watch, if it exists.
func (s *mapSpace) end(name string) {
	s.all.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.all.mu.Unlock()
	if w != nil {
		w.stop()
		<-w.done
		s.recordTrouble(name, trouble{})
	}
}

// readUnwatched reads a ConfigMap that may not be watched, if a worker has a text of it.
func (s *mapSpace) readUnwatched(ctx context.Context, name string, refusal error) {
	m, err := s.all.Client.ConfigMap(ctx, s.namespace, name)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		s.all.saw(types.NamespacedName{Namespace: s.namespace, Name: name}, nil)
	case err != nil:
		s.recordTrouble(name, trouble{err: kube.Lacking(err, s.all.Interval)})
	default:
		s.all.saw(types.NamespacedName{Namespace: s.namespace, Name: name}, m)
		s.recordTrouble(name, trouble{err: kube.Looking(refusal, s.all.Interval), limited: true})
	}
}

func (s *mapSpace) recordTrouble(name string, t trouble) {
	what := s.namespace
	if name != "" {
		what += "/" + name
	}
	s.all.recordTrouble(what, t)
}

// mapHandler handles the events of one watch, after the change was processed by saw.
type mapHandler struct {
	*mapSpace
	name string
}

// Put schedules another read of a new ConfigMap. Its content may have been processed
// before the event that its predecessor is gone.
func (h mapHandler) Put(before, now *metav1.PartialObjectMetadata) {
	if before == nil {
		h.all.reread(types.NamespacedName{Namespace: now.Namespace, Name: now.Name})
	}
}

func (h mapHandler) Gone(namespace, name string) {
	h.all.saw(types.NamespacedName{Namespace: namespace, Name: name}, nil)
}
func (h mapHandler) Report(err error) { h.recordTrouble(h.name, trouble{err: err}) }
func (h mapHandler) Remark(err error) { h.recordTrouble(h.name, trouble{err: err, limited: true}) }
