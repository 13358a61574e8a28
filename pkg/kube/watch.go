package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Handler hears what a Watch sees. Its calls come one at a time, and the Watch
// waits for each. All fields are needed.
type Handler[T any] struct {
	// Replace gives everything that there is: at the beginning, and whenever
	// the Watch may have missed something.
	Replace func(all []T)
	// Put gives what is new or changed.
	Put func(T)
	// Delete names what is gone, or no longer what the Watch looks for.
	Delete func(namespace, name string)
	// Well tells that the watch stands.
	Well func()
}

// Watch follows objects of one kind. It keeps none of them: what there is, is
// known to the Handler.
type Watch[T any] struct {
	reflector *cache.Reflector
	source    *listWatch[T]
	log       klog.Logger
}

// Run lists and watches until the watch breaks, and gives the reason; nil when
// it ended in an ordinary way, such as a history that the API server no longer
// has. Run it again, after a pause, to go on: what came between shows then.
// When ctx ends, so does Run, with the context's error.
func (w *Watch[T]) Run(ctx context.Context) error {
	err := w.reflector.ListAndWatchWithContext(klog.NewContext(ctx, w.log))
	w.source.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// newWatch makes a Watch over the API's own list and watch. Each object is
// turned into a T at once, and not referred to afterwards.
func newWatch[T any](log klog.Logger, kind string, list listFunc, open openFunc, convert convertFunc[T], h Handler[T]) *Watch[T] {
	s := &listWatch[T]{list: list, open: open, well: h.Well}
	s.convert = func(o runtime.Object) (*entry[T], error) {
		value, meta, err := convert(o)
		if err != nil {
			return nil, err
		}
		e := &entry[T]{value: value}
		e.Namespace, e.Name, e.ResourceVersion = meta.Namespace, meta.Name, meta.ResourceVersion
		return e, nil
	}
	store := &store[T]{source: s, handler: h}
	return &Watch[T]{source: s, log: log, reflector: cache.NewReflectorWithOptions(s, nil, store, cache.ReflectorOptions{
		Logger: &log, Name: kind, TypeDescription: kind,
	})}
}

type (
	listFunc func(context.Context, metav1.ListOptions) (items []runtime.Object, meta metav1.ListMeta, err error)
	openFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

	convertFunc[T any] func(runtime.Object) (T, *metav1.ObjectMeta, error)
)

// entry is a T on its way through the library.
type entry[T any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value T
}

// DeepCopyObject is not one: entries are not changed.
func (e *entry[T]) DeepCopyObject() runtime.Object { return e }

// listWatch is where the reflector gets objects from.
type listWatch[T any] struct {
	list    listFunc
	open    openFunc
	convert func(runtime.Object) (*entry[T], error)
	well    func()

	mu        sync.Mutex     // no list begins while those under way are waited for
	calls     sync.WaitGroup // lists under way
	listening atomic.Bool    // a watch is open, and its initial list still comes
}

// ListWithContext is the fallback for an API server that does not stream lists,
// or does not permit a watch.
func (l *listWatch[T]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	defer l.calls.Done()
	items, meta, err := l.list(ctx, options)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if items[i], err = l.convert(item); err != nil {
			return nil, err
		}
	}
	return &metainternalversion.List{ListMeta: meta, Items: items}, nil
}

// begin counts a list in. None begins after ctx has ended.
func (l *listWatch[T]) begin(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	l.calls.Add(1)
	l.listening.Store(false)
	return nil
}

// end waits for a list that the reflector gave up because ctx has ended: it
// does not itself. What has not begun by now will not.
func (l *listWatch[T]) end() {
	l.mu.Lock()
	l.listening.Store(false)
	l.mu.Unlock()
	l.calls.Wait()
}

func (l *listWatch[T]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.open(ctx, options)
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// The reflector would try again and again, tell nobody, and not
		// always notice that it is to stop.
		return nil, errors.New(err.Error())
	}
	if err != nil {
		return nil, err
	}
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	l.listening.Store(initial)
	if !initial {
		l.well()
	}
	return w, nil
}

// List and Watch are of an interface that the reflector takes but does not use.
func (l *listWatch[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l *listWatch[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// store hands on to the handler what the reflector would store.
type store[T any] struct {
	source  *listWatch[T]
	handler Handler[T]
}

// entry converts what comes from a watch; lists are converted already.
func (s *store[T]) entry(object any) (*entry[T], error) {
	switch o := object.(type) {
	case *entry[T]:
		return o, nil
	case runtime.Object:
		return s.source.convert(o)
	}
	return nil, fmt.Errorf("an object of type %T came from the API", object)
}

// Transformer is what the reflector does with the objects of a streamed list
// before it collects them.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.entry(object) }
}

func (s *store[T]) Add(object any) error { return s.Update(object) }

func (s *store[T]) Update(object any) error {
	e, err := s.entry(object)
	if err == nil {
		s.handler.Put(e.value)
	}
	return err
}

func (s *store[T]) Delete(object any) error {
	e, err := s.entry(object)
	if err == nil {
		s.handler.Delete(e.Namespace, e.Name)
	}
	return err
}

func (s *store[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		e, err := s.entry(object)
		if err != nil {
			return err
		}
		all = append(all, e.value)
	}
	s.handler.Replace(all)
	if s.source.listening.Swap(false) {
		s.handler.Well()
	}
	return nil
}

func (s *store[T]) Resync() error { return nil }
