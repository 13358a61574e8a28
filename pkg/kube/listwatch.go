package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/secretsync/syncer/internal/retry"
)

// firstPause is the delay before the first retry of a failed request.
const firstPause = 200 * time.Millisecond

// After anewAtOnce lists in a row, the next ones are anewEvery apart. The library does
// not pause after an answer that the history is gone, however often it gets that answer.
const (
	anewAtOnce = 3
	anewEvery  = time.Second
)

// listWatch supplies an informer with objects. The informer itself would wait for up to a
// minute after a failed request. It would not report an API server that refuses
// connections, and would not stop during the wait. Therefore listWatch repeats a request
// until it succeeds or the informer must do something else (decision 027).
type listWatch[T object] struct {
	api      objectAPI[T]
	store    cache.Store // of the informer
	interval time.Duration
	handler  Handler[T]

	anew *rate.Limiter // of lists from the start, streamed or not

	polling atomic.Bool // instead of watching

	mu    sync.Mutex
	ended bool           // no more lists start
	calls sync.WaitGroup // lists in progress, and polling
}

// ListWithContext is the informer's fallback if it may not watch, or if the API server
// does not stream lists.
func (l *listWatch[T]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if !l.begin() {
		return nil, context.Canceled
	}
	defer l.calls.Done()
	if err := l.anew.Wait(ctx); err != nil {
		return nil, err
	}
	return again(ctx, l.interval, l.failed, handedOn, func() (runtime.Object, error) {
		items, meta, err := l.api.listPage(ctx, options)
		if apierrors.IsForbidden(err) {
			meta = metav1.ListMeta{}
			if items, err = l.api.readAll(ctx); items != nil && err != nil {
				l.failed(err)
				err = nil
			}
		}
		list := &metainternalversion.List{ListMeta: meta, Items: make([]runtime.Object, len(items))}
		for i, item := range items {
			list.Items[i] = item
		}
		return list, err
	})
}

// begin counts a new list and reports whether it may start.
func (l *listWatch[T]) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.calls.Add(1)
	}
	return !l.ended
}

// end waits for the list that an informer abandons when its context ends, because the
// informer does not wait for it.
func (l *listWatch[T]) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.calls.Wait()
}

// WatchWithContext opens a watch. If watching is forbidden, it polls.
func (l *listWatch[T]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	hear := handedOn
	if options.SendInitialEvents != nil {
		if err := l.anew.Wait(ctx); err != nil {
			return nil, err
		}
		hear = func(err error) bool { return handedOn(err) || unstreamed(err) }
	}
	return again(ctx, l.interval, l.failed, hear, func() (watch.Interface, error) {
		w, err := l.api.open(ctx, options)
		if apierrors.IsForbidden(err) && options.SendInitialEvents == nil {
			return l.poll(ctx, options, err), nil
		}
		if err == nil {
			l.polling.Store(false)
			l.handler.Report(nil)
		}
		return w, err
	})
}

// List and Watch belong to an interface that the informer takes but does not use.
func (l *listWatch[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l *listWatch[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// poll returns a watch that checks for changes at each interval. When a true watch is
// permitted, it ends like a watch whose history is gone, so that the informer starts
// again.
func (l *listWatch[T]) poll(ctx context.Context, options metav1.ListOptions, refusal error) watch.Interface {
	l.polling.Store(true)
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	l.calls.Go(func() {
		defer close(events)
		tick := time.NewTicker(l.interval)
		defer tick.Stop()
		for {
			for _, event := range l.readChanges(ctx, refusal) {
				select {
				case events <- event:
				case <-w.StopChan():
					return
				}
			}
			select {
			case <-tick.C:
			case <-w.StopChan():
				return
			}
			if l.permitted(ctx, options) {
				permitted := apierrors.NewResourceExpired("it may be watched now").ErrStatus
				select {
				case events <- watch.Event{Type: watch.Error, Object: &permitted}:
				case <-w.StopChan():
				}
				return
			}
		}
	})
	return w
}

// permitted reports whether a watch would succeed.
func (l *listWatch[T]) permitted(ctx context.Context, options metav1.ListOptions) bool {
	w, err := l.api.open(ctx, options)
	if err == nil {
		w.Stop()
	}
	return err == nil || handedOn(err)
}

// readChanges returns the changes since the last look.
func (l *listWatch[T]) readChanges(ctx context.Context, refusal error) []watch.Event {
	all, err := l.api.readAll(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		l.failed(err)
	default:
		l.handler.Remark(Looking(refusal, l.interval))
	}
	if err != nil && all == nil {
		return nil
	}
	return changes(l.store, all)
}

// watchRights says which rights a watch needs.
const watchRights = "grant the verbs list and watch by a Role or ClusterRole, with a binding to Syncer's service account"

// Looking says why polling replaces a watch.
func Looking(refusal error, every time.Duration) error {
	return fmt.Errorf("%w; %s (reading it every %v until then)", refusal, watchRights, every)
}

// Lacking says which right to grant if an error says that an action is forbidden.
func Lacking(err error, every time.Duration) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; %s (trying again every %v)", err, watchRights, every)
	}
	return err
}

func (l *listWatch[T]) failed(err error) { l.handler.Report(Lacking(err, l.interval)) }

// changes returns the events that update the stored objects to all.
func changes[T object](store cache.Store, all []T) (events []watch.Event) {
	there := sets.New[string]()
	for _, o := range all {
		key := cache.MetaObjectToName(o).String()
		there.Insert(key)
		stored, _, _ := store.GetByKey(key)
		if before, ok := stored.(T); !ok || before.GetResourceVersion() != o.GetResourceVersion() {
			events = append(events, watch.Event{Type: watch.Modified, Object: o})
		}
	}
	for _, stored := range store.List() {
		if o := stored.(T); !there.Has(cache.MetaObjectToName(o).String()) {
			events = append(events, watch.Event{Type: watch.Deleted, Object: o})
		}
	}
	return events
}

// again repeats a request until it succeeds, ctx ends, or its error must be handed on.
// Other errors are failures. The pauses after them are at most interval.
func again[R any](ctx context.Context, interval time.Duration, failed func(error), handedOn func(error) bool, request func() (R, error)) (R, error) {
	pauses := retry.Backoff{First: firstPause, Max: interval}.Start()
	return backoff.RetryNotifyWithData(func() (R, error) {
		result, err := request()
		if handedOn(err) {
			err = backoff.Permanent(err)
		}
		return result, err
	}, backoff.WithContext(pauses, ctx), func(err error, _ time.Duration) { failed(err) })
}

// handedOn reports whether an error means that the informer must list again.
func handedOn(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// unstreamed reports whether an error means that a list is not available as a stream, but
// may be available without.
func unstreamed(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return answered && status.ErrStatus.Code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}
