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
	// Namespace is the one that the objects are in; "" is all.
	Namespace string
	// Name is that of the only object, whatever its labels: a role that names
	// an object permits to watch it by its name. "": those with ManagedLabel.
	Name string
	// Known returns namespaces to read one by one when neither the objects of all
	// namespaces nor the namespaces may be listed; only for Namespace "". Nil: none
	// is known.
	Known func() []string
	// Definitions is how many bytes the definitions of the Secrets of one namespace
	// may have together, beyond which they are dropped; 0: no limit.
	Definitions int
	// Interval is the time between looks at what may not be watched, and the
	// longest time between tries to watch; at most, and if it is zero, 10 s.
	Interval time.Duration
}

// longestInterval is the longest that a Selection's Interval may be.
const longestInterval = 10 * time.Second

// Handler is called by a Watch. Put and Gone are called one at a time.
type Handler[T any] interface {
	// Put is called with an object that is new or has changed, and with what
	// it was before, if it was there: another UID says that it was made anew.
	Put(before, now T)
	// Gone is called with the name of an object that is gone, or is no longer
	// selected, and of one that is selected by name and is not there at first.
	Gone(namespace, name string)
	// Report is called with the reason while nothing is heard of what changes,
	// and with nil once the objects are watched.
	Report(error)
	// Remark is called with the reason while what changes is found by looks,
	// since it may not be watched.
	Remark(error)
}

// object is what a Watch follows: pointers to structures with metadata.
type object interface {
	comparable
	runtime.Object
	metav1.Object
}

// Watch follows objects of one kind by an informer, which stores them. It runs
// once.
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
	absent bool       // the handler knows that what is selected by name is not there
}

// WatchSecrets returns a Watch of Secrets.
func (c *Client) WatchSecrets(s Selection, h Handler[*Secret]) *Watch[*Secret] {
	w := &Watch[*Secret]{Selection: s, log: c.log, handler: h}
	w.inform("secrets", secretAPI{selected{c, "secrets", s}, w}, func(o any) (any, error) {
		secret, stripped := o.(*Secret)
		if !stripped {
			found, ok := o.(*corev1.Secret)
			if !ok {
				return o, nil
			}
			secret = strip(found)
		}
		w.fit(secret)
		return secret, nil
	})
	return w
}

// WatchConfigMaps returns a Watch of one ConfigMap, or of all of a namespace, that
// stores which there are. It calls see with each as it is, more than once.
func (c *Client) WatchConfigMaps(s Selection, see func(types.NamespacedName, *corev1.ConfigMap), h Handler[*metav1.PartialObjectMetadata]) *Watch[*metav1.PartialObjectMetadata] {
	w := &Watch[*metav1.PartialObjectMetadata]{Selection: s, log: c.log, handler: h}
	api := configMapAPI{selected{c, "configmaps", s}, see}
	w.inform("configmaps", api, func(o any) (any, error) {
		if m, ok := o.(*corev1.ConfigMap); ok {
			return api.seen(m), nil
		}
		return o, nil // seen already
	})
	return w
}

// TryWatchingConfigMaps has the API server say whether it would have them watched.
func (c *Client) TryWatchingConfigMaps(ctx context.Context, s Selection) error {
	w, err := selected{c, "configmaps", s}.open(ctx, metav1.ListOptions{})
	if err == nil {
		w.Stop()
	}
	return err
}

// inform makes the informer. The library never sees a value for longer than it
// takes to decode and transform it, which never fails: it would log the object.
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

// Run watches until ctx ends, and returns when all that it started has.
// Whatever breaks the watch is reported, and overcome as soon as it is mended.
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

// Look reads the objects once, and calls the handler with what is not as it
// was. Call it before Run, if at all.
func (w *Watch[T]) Look(ctx context.Context) error {
	all, err := w.source.api.look(ctx)
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

// Synced reports whether the handler has been called with all that there is.
func (w *Watch[T]) Synced() bool { return w.looked.Load() || w.registration.HasSynced() }

// Live reports whether what is stored would be other by now had it changed, as far
// as the API server can be reached.
func (w *Watch[T]) Live() bool { return w.registration.HasSynced() && !w.Polling() }

// Listed is closed once what there is at first is stored.
func (w *Watch[T]) Listed() <-chan struct{} { return w.registration.HasSyncedChecker().Done() }

// Polling reports whether looks at each interval take the place of a watch, which
// is forbidden.
func (w *Watch[T]) Polling() bool { return w.source.polling.Load() }

// Find returns an object that is there.
func (w *Watch[T]) Find(namespace, name string) (o T, there bool) {
	stored, there, _ := w.informer.GetStore().GetByKey(namespace + "/" + name)
	o, _ = stored.(T)
	return o, there
}

// Stored returns the objects that are there. The handler is called with them, or
// with newer ones, or was.
func (w *Watch[T]) Stored() (all []T) {
	for _, o := range w.informer.GetStore().List() {
		all = append(all, o.(T))
	}
	return all
}

// missing calls the handler when what was selected by its name is not there.
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

// put passes over what a new list or watch only repeats, and hands on what is
// stored: an event may be older than what Stored has returned.
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
	w.room.take(name, 0, 0)
	w.handler.Gone(name.Namespace, name.Name)
}
