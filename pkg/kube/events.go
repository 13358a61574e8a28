package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

const (
	maxMessage   = 1024             // bytes of an Event's message; limit of events.k8s.io
	maxWaiting   = 1000             // Events that wait to be sent
	repeatAfter  = time.Hour        // repeat a warning; the API server has forgotten it by then
	flushWithin  = 3 * time.Second  // time limit for sending the waiting Events at the end
	eventTimeout = 10 * time.Second // for one Event
)

// Recorder writes Kubernetes Events. They are best effort: an Event that cannot be sent
// is lost. Use NewRecorder to create a Recorder.
type Recorder struct {
	client     *Client
	source     corev1.EventSource
	reporter   Reporter
	correlator *record.EventCorrelator
	waiting    chan *corev1.Event
	lost       atomic.Int64

	mu     sync.Mutex
	budget eventBudget
	said   map[string]eventMessage // by object: the last message about it, if that was a warning
	pruned time.Time
}

// Reporter is called with the state of a subject; a nil error means no error.
type Reporter interface {
	Report(subject string, err error)
}

// eventMessage is a message about an object, with its time.
type eventMessage struct {
	reason, message string
	at              time.Time
}

// NewRecorder returns a Recorder for the Events of component, which appear as their
// source. It starts nothing. The reporter is called with the state of Events in each
// namespace.
func (c *Client) NewRecorder(component string, reporter Reporter) *Recorder {
	host, _ := os.Hostname() // the Pod's name, for human readers
	return &Recorder{
		client: c, reporter: reporter,
		source: corev1.EventSource{Component: component, Host: host},
		// Repeated Events of one object and reason become one Event with a count. Events
		// that differ too often are combined. Beyond that, each reason has a budget per
		// hour, so that a flood of one reason does not suppress the others.
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			SpamKeyFunc: func(e *corev1.Event) string { return name(e.InvolvedObject) + "/" + e.Reason },
		}),
		waiting: make(chan *corev1.Event, maxWaiting),
		said:    map[string]eventMessage{},
	}
}

// SecretReference refers to a Secret in an Event.
func SecretReference(namespace, name string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name, UID: uid}
}

// ReferenceTo refers to a Secret that may be in a set, which knows its UID.
func ReferenceTo(set *records.Set, key targets.Key) corev1.ObjectReference {
	namespace, name := key.Secret()
	uid := ""
	if t, there := set.Get(key); there {
		uid = t.Secret.UID
	}
	return SecretReference(namespace, name, types.UID(uid))
}

// Event reports something about an object. kind is corev1.EventTypeNormal or
// EventTypeWarning. reason is one word for machines. message is for people and is cut at
// 1,024 bytes. A warning is not repeated for the same object until there was another
// message or an hour has passed. Normal messages are sent each time, within a budget for
// their reason. Event never blocks.
func (r *Recorder) Event(about corev1.ObjectReference, kind, reason, message string) {
	message = brief.Truncate(message, maxMessage)
	now := metav1.Now()
	key := name(about)
	r.mu.Lock()
	defer r.mu.Unlock()
	warning, last := kind == corev1.EventTypeWarning, r.said[key]
	if warning && last.reason == reason && last.message == message && now.Sub(last.at) < repeatAfter {
		return
	}
	r.prune(now.Time)
	if !warning {
		delete(r.said, key) // the next warning is news
		if !r.budget.allow(about.Namespace, reason) {
			return
		}
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	select {
	case r.waiting <- &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: util.GenerateEventName(about.Name, now.UnixNano())},
		InvolvedObject: about, Type: kind, Reason: reason, Message: message,
		Source: r.source, ReportingController: r.source.Component, ReportingInstance: r.source.Host,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}:
		if warning {
			r.said[key] = eventMessage{reason, message, now.Time}
		}
	default:
		r.lost.Add(1)
	}
}

// prune drops messages that may be repeated anyway, and budgets that are whole again.
func (r *Recorder) prune(now time.Time) {
	if now.Sub(r.pruned) < repeatAfter/4 {
		return
	}
	r.pruned = now
	r.budget.prune()
	maps.DeleteFunc(r.said, func(_ string, u eventMessage) bool { return now.Sub(u.at) >= repeatAfter })
}

// name distinguishes an object from others, and from an earlier object with the same
// name.
func name(o corev1.ObjectReference) string {
	return o.Kind + "/" + o.Namespace + "/" + o.Name + "/" + string(o.UID)
}

// Run sends Events until ctx ends. After that, it sends the waiting Events within a few
// seconds.
func (r *Recorder) Run(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-sending.Done():
			return
		}
		select {
		case <-time.After(flushWithin):
			cancel()
		case <-sending.Done():
		}
	})
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-r.waiting:
			r.send(sending, e)
		}
	}
	for sending.Err() == nil {
		select {
		case e := <-r.waiting:
			r.send(sending, e)
		default:
			return
		}
	}
}

// send writes one Event, or increases the count of an existing one.
func (r *Recorder) send(ctx context.Context, e *corev1.Event) {
	result, err := r.correlator.EventCorrelate(e)
	if err != nil || result.Skip {
		return // too many of its kind
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	events := r.client.Core.Events(e.Namespace)
	var written *corev1.Event
	if err = errAbsent; result.Event.Count > 1 {
		written, err = events.Patch(ctx, result.Event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
	}
	if errors.Is(err, errAbsent) || apierrors.IsNotFound(err) { // the API server keeps them an hour
		result.Event.ResourceVersion = ""
		written, err = events.Create(ctx, result.Event, metav1.CreateOptions{})
	}
	subject := "events in " + describeNamespace(e.Namespace)
	if err != nil {
		r.allowRepeat(e)
		r.reporter.Report(subject, fmt.Errorf("%w (this Event is lost; deliveries continue)", err))
		return
	}
	r.correlator.UpdateState(written)
	if len(r.waiting) == 0 { // once for a burst
		if lost := r.lost.Swap(0); lost > 0 {
			err = fmt.Errorf("%d events are lost: there were more than %d at once", lost, maxWaiting)
		}
	}
	r.reporter.Report(subject, err)
}

// allowRepeat allows an Event that could not be sent to be repeated.
func (r *Recorder) allowRepeat(e *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := name(e.InvolvedObject)
	if last := r.said[key]; last.reason == e.Reason && last.message == e.Message {
		delete(r.said, key)
	}
}

// errAbsent means that an Event has not been written yet.
var errAbsent = errors.New("no such event yet")

// The budgets of Normal Events with the same reason. An Event costs the API server about as
// much as the write of a Secret that it reports.
const (
	eventsAtOnce, eventsPerSecond       = 100, 10 // of all namespaces
	namespaceAtOnce, namespacePerSecond = 25, 1   // of one namespace
)

// eventBudget limits Normal Events, so that a change of many Secrets does not double the
// load of the API server. One namespace cannot take the whole budget. The Recorder's lock
// guards it.
type eventBudget struct {
	all        map[string]*rate.Limiter    // by reason
	namespaces map[[2]string]*rate.Limiter // by namespace and reason
}

// allow reports whether one more Event fits the budget.
func (b *eventBudget) allow(namespace, reason string) bool {
	if b.all == nil {
		b.all, b.namespaces = map[string]*rate.Limiter{}, map[[2]string]*rate.Limiter{}
	}
	key := [2]string{namespace, reason}
	if b.all[reason] == nil {
		b.all[reason] = rate.NewLimiter(eventsPerSecond, eventsAtOnce)
	}
	if b.namespaces[key] == nil {
		b.namespaces[key] = rate.NewLimiter(namespacePerSecond, namespaceAtOnce)
	}
	return b.namespaces[key].Allow() && b.all[reason].Allow()
}

// prune drops the limiters of namespaces that have been quiet.
func (b *eventBudget) prune() {
	maps.DeleteFunc(b.namespaces, func(_ [2]string, l *rate.Limiter) bool { return l.Tokens() >= namespaceAtOnce })
}
