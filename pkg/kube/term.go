package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// errNoTerm is why nothing is written to the API server.
var errNoTerm = errors.New("not sent: this process may have lost the Lease, and another may lead; the leader repeats it")

// term limits the writes of a process: during an election, it writes only while no other
// process can lead. Each write checks the clock itself, because a timer may fire late
// after the process was suspended. The zero term limits nothing.
type term struct {
	guard func(ctx context.Context, namespace string) error // see Client.Guard; may be nil

	mu        sync.Mutex
	contested bool
	until     time.Time       // zero: no known end
	over      context.Context // ends with the term; nil: it has ended
	close     context.CancelFunc
	timer     *time.Timer // closes it
}

// contest forbids writes until the term starts.
func (t *term) contest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contested = true
}

// extend starts the term, or moves its end; zero means no end.
func (t *term) extend(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil {
		t.over, t.close = context.WithCancel(context.Background())
	}
	t.until = until
	if t.timer != nil {
		t.timer.Stop()
	}
	if !until.IsZero() {
		t.timer = time.AfterFunc(time.Until(until), t.expire)
	}
}

func (t *term) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pastLocked() { // otherwise it was extended in the meantime
		t.endLocked()
	}
}

// end ends the term and cancels the writes in flight.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked()
}

func (t *term) endLocked() {
	if t.over != nil {
		t.close()
		t.over = nil
	}
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *term) pastLocked() bool { return !t.until.IsZero() && !time.Now().Before(t.until) }

// checkTerm returns why nothing may be written now. over, if not nil, ends when writes are
// no longer allowed.
func (t *term) checkTerm() (over context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.contested:
		return nil, nil
	case t.over == nil || t.pastLocked():
		return nil, errNoTerm
	}
	return t.over, nil
}

// bind cancels a write when the term ends, until it is released. The error means that the
// write must not be sent.
func (t *term) bind(r *http.Request, cancel context.CancelFunc) (release func() bool, err error) {
	release = func() bool { return true }
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/apis/"+coordinationv1.GroupName+"/") {
		return release, nil
	}
	over, err := t.checkTerm()
	if over != nil {
		release = context.AfterFunc(over, cancel)
	}
	if namespace := guarded(r); err == nil && t.guard != nil && namespace != "" {
		err = t.guard(r.Context(), namespace)
	}
	return release, err
}
