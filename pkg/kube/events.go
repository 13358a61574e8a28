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
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
)

const (
	maxMessage   = 1024             // bytes of an Event's message; the API group events.k8s.io allows no more
	maxWaiting   = 1000             // Events that wait to be sent
	repeatAfter  = time.Hour        // what was said is said again; the API server forgets it then too
	flushWithin  = 3 * time.Second  // what still waits at the end is sent within this
	eventTimeout = 10 * time.Second // of one Event
)

// Recorder writes Kubernetes Events. They are best effort: one that cannot be
// sent is lost. Make it with NewRecorder.
type Recorder struct {
	client     *Client
	source     corev1.EventSource
	reporter   Reporter
	correlator *record.EventCorrelator
	waiting    chan *corev1.Event
	lost       atomic.Int64

	mu     sync.Mutex
	said   map[string]utterance // object → the last that was said of it
	pruned time.Time
}

// Reporter is called with how it goes with a subject; a nil error means well.
type Reporter interface {
	Report(subject string, err error)
}

// utterance is what was said of an object, and when.
type utterance struct {
	reason, message string
	at              time.Time
}

// NewRecorder makes a Recorder for the Events of component, which appear as
// coming from there. It starts nothing. The reporter is called with how it goes
// with the Events of each namespace.
func (c *Client) NewRecorder(component string, reporter Reporter) *Recorder {
	host, _ := os.Hostname() // the Pod's name, for the reader's eye
	return &Recorder{
		client: c, reporter: reporter,
		source: corev1.EventSource{Component: component, Host: host},
		// Events of one object and reason that repeat become one with a
		// count, those that differ too often are combined, and beyond that
		// there are some an hour for each reason: a flood of one reason does
		// not silence the others.
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			SpamKeyFunc: func(e *corev1.Event) string { return name(e.InvolvedObject) + "/" + e.Reason },
		}),
		waiting: make(chan *corev1.Event, maxWaiting),
		said:    map[string]utterance{},
	}
}

// SecretReference refers to a Secret in an Event.
func SecretReference(namespace, name string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name, UID: uid}
}

// Event says something about an object: kind is corev1.EventTypeNormal or
// EventTypeWarning, reason is one word for machines, message is for people and
// is cut at 1,024 bytes. The same warning again about the same object is not
// sent until something else was said about it, or an hour has passed; what
// happens normally is sent each time it happens. Event never waits.
func (r *Recorder) Event(about corev1.ObjectReference, kind, reason, message string) {
	message = cut(message, maxMessage)
	now := metav1.Now()
	key := name(about)
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.said[key]
	if kind == corev1.EventTypeWarning && last.reason == reason && last.message == message && now.Sub(last.at) < repeatAfter {
		return
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
		r.said[key] = utterance{reason, message, now.Time}
		r.prune(now.Time)
	default:
		r.lost.Add(1)
	}
}

// prune forgets what may be said again anyway.
func (r *Recorder) prune(now time.Time) {
	if now.Sub(r.pruned) < repeatAfter/4 {
		return
	}
	r.pruned = now
	maps.DeleteFunc(r.said, func(_ string, u utterance) bool { return now.Sub(u.at) >= repeatAfter })
}

// name distinguishes one object from another, and from an earlier one of its name.
func name(o corev1.ObjectReference) string {
	return o.Kind + "/" + o.Namespace + "/" + o.Name + "/" + string(o.UID)
}

// cut shortens text to at most n bytes, at the end of a character.
func cut(text string, n int) string {
	const more = "…"
	if len(text) <= n {
		return text
	}
	n -= len(more)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + more
}

// Run sends Events until ctx ends, and then, within a few seconds, those that
// still wait.
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

// send writes one Event, or adds it to one that is there.
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
	if errors.Is(err, errAbsent) || apierrors.IsNotFound(err) { // the API server keeps Events for an hour
		result.Event.ResourceVersion = ""
		written, err = events.Create(ctx, result.Event, metav1.CreateOptions{})
	}
	subject := "events in " + describeNamespace(e.Namespace)
	if err != nil {
		r.unsay(e)
		r.reporter.Report(subject, fmt.Errorf("%w (this event is lost; all else goes on)", err))
		return
	}
	r.correlator.UpdateState(written)
	if lost := r.lost.Swap(0); lost > 0 {
		err = fmt.Errorf("%d events are lost: there were more than %d at once", lost, maxWaiting)
	}
	r.reporter.Report(subject, err)
}

// unsay lets what could not be sent be said again.
func (r *Recorder) unsay(e *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := name(e.InvolvedObject)
	if last := r.said[key]; last.reason == e.Reason && last.message == e.Message {
		delete(r.said, key)
	}
}

// errAbsent stands for an Event that was not written yet.
var errAbsent = errors.New("no such event yet")
