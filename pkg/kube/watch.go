package kube

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Selection says which objects a Watch follows.
type Selection struct {
	// Namespace is the namespace of the objects; "" means all.
	Namespace string
	// Name is the name of the only object, whatever its labels. A role that names an
	// object permits watching it by name. "" selects the objects with targets.ManagedLabel.
	Name string
	// Known returns the namespaces to read one by one, if both listing the objects of all
	// namespaces and listing the namespaces are forbidden. It applies only to Namespace
	// "". nil means that none is known.
	Known func() []string
	// Definitions is the maximum total size of the definitions of the Secrets in one
	// namespace, in bytes. Definitions beyond it are dropped; 0 means no limit.
	Definitions int
	// Interval is the time between reads of objects that may not be watched. It is also
	// the maximum time between tries to watch. The maximum is 10 s, which is also the
	// meaning of zero.
	Interval time.Duration
}

// longestInterval is the maximum of a Selection's Interval.
const longestInterval = 10 * time.Second

// Handler receives the events of a Watch. Put and Gone are called one at a time.
type Handler[T any] interface {
	// Put is called with a new or changed object and its earlier state, if it existed.
	// Another UID means that the object was created again.
	Put(before, now T)
	// Gone is called with the name of an object that is gone or no longer selected. It is
	// also called if an object selected by name does not exist at first.
	Gone(namespace, name string)
	// Report is called with the reason while changes cannot be observed, and with nil
	// once the objects are watched.
	Report(error)
	// Remark is called with the reason while changes are found by polling, because
	// watching is forbidden.
	Remark(error)
}

// object is the type of objects in a Watch: pointers to structures with metadata.
type object interface {
	comparable
	runtime.Object
	metav1.Object
}

// Watch follows objects of one kind by an informer, which stores them. It runs once.
type Watch[T object] struct {
	Selection
	log          klog.Logger
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	source       *listWatch[T]
	handler      Handler[T]

	looked atomic.Bool
	room   room

	mu     sync.Mutex // held while the handler is called
	absent bool       // the handler knows that the object selected by name is absent
}

// WatchSecrets returns a Watch of Secrets. If see is not nil, it is called with each
// Secret before its values are wiped.
func (c *Client) WatchSecrets(s Selection, see func(*corev1.Secret), h Handler[*Secret]) *Watch[*Secret] {
	w := &Watch[*Secret]{Selection: s, log: c.log, handler: h}
	w.inform("secrets", secretAPI{selected{c, "secrets", s}, w}, func(o any) (any, error) {
		secret, stripped := o.(*Secret)
		if !stripped {
			found, ok := o.(*corev1.Secret)
			if !ok {
				return o, nil
			}
			if see != nil {
				see(found)
			}
			secret = strip(found)
		}
		w.fit(secret)
		return secret, nil
	})
	return w
}

// WatchConfigMaps returns a Watch of one ConfigMap, or of all ConfigMaps of a namespace.
// It stores which of them exist. It calls see with each ConfigMap, more than once.
func (c *Client) WatchConfigMaps(s Selection, see func(types.NamespacedName, *corev1.ConfigMap), h Handler[*metav1.PartialObjectMetadata]) *Watch[*metav1.PartialObjectMetadata] {
	w := &Watch[*metav1.PartialObjectMetadata]{Selection: s, log: c.log, handler: h}
	api := configMapAPI{selected{c, "configmaps", s}, see}
	w.inform("configmaps", api, func(o any) (any, error) {
		if m, ok := o.(*corev1.ConfigMap); ok {
			return api.seen(m), nil
		}
		return o, nil // already passed to see
	})
	return w
}

// TryWatchingConfigMaps asks the API server whether it permits watching the ConfigMaps.
func (c *Client) TryWatchingConfigMaps(ctx context.Context, s Selection) error {
	w, err := selected{c, "configmaps", s}.open(ctx, metav1.ListOptions{})
	if err == nil {
		w.Stop()
	}
	return err
}

// inform creates the informer. The library holds a value only while it decodes and
// transforms the object. The transformation never fails, because the library would log
// the object then.
func (w *Watch[T]) inform(kind string, api objectAPI[T], transform cache.TransformFunc) {
	if w.Interval <= 0 || w.Interval > longestInterval {
		w.Interval = longestInterval
	}
	w.source = &listWatch[T]{api: api, interval: w.Interval, handler: w.handler, anew: rate.NewLimiter(rate.Every(anewEvery), anewAtOnce)}
	w.informer = cache.NewSharedIndexInformerWithOptions(w.source, nil, cache.SharedIndexInformerOptions{ObjectDescription: kind})
	w.source.store = w.informer.GetStore()
	// None of these fails before the informer runs.
	_ = w.informer.SetTransform(transform)
	_ = w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			w.handler.Report(err)
		}
	})
	w.registration, _ = w.informer.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { w.put(nil, now) },
		UpdateFunc: w.put,
		DeleteFunc: w.gone,
	}, cache.HandlerOptions{Logger: &w.log})
}

// Run watches until ctx ends. It returns after everything that it started has stopped.
// Errors of the watch are reported, and the watch recovers as soon as the cause is fixed.
func (w *Watch[T]) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { w.informer.RunWithContext(klog.NewContext(ctx, w.log)) })
	select {
	case <-w.Listed():
		w.missing()
	case <-ctx.Done():
	}
	wg.Wait()
	w.source.end()
}

// Look reads the objects once and calls the handler with the changed ones. If used, it
// must be called before Run.
func (w *Watch[T]) Look(ctx context.Context) error {
	all, err := w.source.api.readAll(ctx)
	if err != nil && all == nil {
		return err
	}
	store := w.informer.GetStore()
	for _, event := range changes(store, all) {
		before, _, _ := store.Get(event.Object)
		if event.Type == watch.Deleted {
			_ = store.Delete(event.Object)
			w.gone(before)
		} else {
			_ = store.Update(event.Object)
			w.put(before, event.Object)
		}
	}
	w.missing()
	w.looked.Store(w.looked.Load() || err == nil)
	return err
}

// Synced reports whether the handler has been called with all existing objects.
func (w *Watch[T]) Synced() bool { return w.looked.Load() || w.registration.HasSynced() }

// Live reports whether the store would show any change by now, as far as the API server
// is reachable.
func (w *Watch[T]) Live() bool { return w.registration.HasSynced() && !w.Polling() }

// Listed is closed after the initial objects are stored.
func (w *Watch[T]) Listed() <-chan struct{} { return w.registration.HasSyncedChecker().Done() }

// Polling reports whether reads at each interval replace a watch, because watching is
// forbidden.
func (w *Watch[T]) Polling() bool { return w.source.polling.Load() }

// Find returns a stored object.
func (w *Watch[T]) Find(namespace, name string) (o T, there bool) {
	stored, there, _ := w.informer.GetStore().GetByKey(namespace + "/" + name)
	o, _ = stored.(T)
	return o, there
}

// Stored returns all stored objects. The handler is called with them, or with newer ones,
// or has been called.
func (w *Watch[T]) Stored() (all []T) {
	for _, o := range w.informer.GetStore().List() {
		all = append(all, o.(T))
	}
	return all
}

// missing calls the handler if the object selected by name does not exist.
func (w *Watch[T]) missing() {
	if w.Name == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there, _ := w.informer.GetStore().GetByKey(w.Namespace + "/" + w.Name); !there && !w.absent {
		w.absent = true
		w.handler.Gone(w.Namespace, w.Name)
	}
}

// put skips repetitions by a new list or watch, and passes on the stored object: an event
// may be older than the result of Stored.
func (w *Watch[T]) put(before, now any) {
	was, _ := before.(T)
	is, ok := now.(T)
	var none T
	if !ok || was != none && was.GetResourceVersion() == is.GetResourceVersion() {
		return
	}
	if stored, there, _ := w.informer.GetStore().Get(now); there {
		is = stored.(T)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absent = false
	w.handler.Put(was, is)
}

func (w *Watch[T]) gone(o any) {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absent = true
	w.room.recordSize(name, 0, 0)
	w.handler.Gone(name.Namespace, name.Name)
}

// room is the total size of the definitions that a Watch stores, in bytes. Sizes are
// recorded during decoding, because an informer collects all objects before it passes any
// on.
type room struct {
	mu    sync.Mutex
	sizes map[cache.ObjectName]int
	used  map[string]int // by namespace
}

// recordSize records the size of an object instead of its earlier size; 0 for an object
// that is gone. If a namespace would exceed most, recordSize records nothing and returns
// false. A most of 0 means no limit.
func (r *room) recordSize(name cache.ObjectName, size, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes, r.used = map[cache.ObjectName]int{}, map[string]int{}
	}
	left := r.used[name.Namespace] - r.sizes[name]
	fits := most == 0 || left+size <= most
	if !fits {
		size = 0
	}
	r.sizes[name], r.used[name.Namespace] = size, left+size
	if size == 0 {
		delete(r.sizes, name)
	}
	if left+size == 0 {
		delete(r.used, name.Namespace)
	}
	return fits
}

// fit drops the definition of a Secret that has no room.
func (w *Watch[T]) fit(s *Secret) {
	if size := s.definition(); !w.room.recordSize(cache.MetaObjectToName(s), size, w.Definitions) {
		s.drop(size, true)
	}
}
