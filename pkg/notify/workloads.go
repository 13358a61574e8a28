package notify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/internal/turns"
	"github.com/secretsync/syncer/internal/wake"
)

// Workload is a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Namespace string
	Kind      string // in lower case: "deployment"
	Name      string
}

// String is "namespace/kind/name".
func (w Workload) String() string { return w.Namespace + "/" + w.Kind + "/" + w.Name }

// Template is what is known of a workload's Pods.
type Template struct {
	// Annotations are those of the Pod template.
	Annotations map[string]string
	// Created is when the workload was created.
	Created time.Time
	// Version changes with each write of the workload, whoever makes it.
	Version string
}

// Cluster is where workloads and Secrets are. A bool is false when there is no
// such object, or none with a revision.
type Cluster interface {
	Template(context.Context, Workload) (Template, bool, error)
	// Annotate adds annotations to the Pod template, in one write; the
	// cluster then replaces the Pods. It is false, and nothing is written, when
	// the workload is no longer as it was read.
	Annotate(ctx context.Context, w Workload, read Template, annotations map[string]string) (bool, error)
	Revision(ctx context.Context, namespace, secret string) (Revision, bool, error)
}

// Restart is the restart of one workload, and why.
type Restart struct {
	Workload Workload
	Because  []RevisedSecret // at least one, ascending by name
}

// RevisedSecret is a Secret whose revision a workload's Pods have not seen.
type RevisedSecret struct {
	Name     string
	From, To string // numbers of revisions; From is "" when none was noted
}

// String says why the workload is restarted: "db 3→4, tls 7→8".
func (r Restart) String() string {
	texts := make([]string, len(r.Because))
	for i, s := range r.Because {
		from := s.From
		if from == "" {
			from = "?"
		}
		texts[i] = s.Name + " " + from + "→" + s.To
	}
	return strings.Join(texts, ", ")
}

// RestartListener is called with each restart, and with each workload that
// could not be looked at or restarted, and for which Secrets, ascending by
// name; at each try. Missing is called, once for all of them, with the workloads
// that a Secret names and that are not there.
type RestartListener interface {
	Restarted(Restart)
	NotRestarted(w Workload, secrets []string, err error)
	Missing(namespace, secret string, err error)
}

// Reporter is called with how it goes with a subject; nil means well.
type Reporter interface {
	Report(subject string, err error)
}

// Restarts restarts workloads when Secrets that they use have changed, by
// noting the new revisions in their Pod templates. What must be restarted is
// read from the cluster each time, so neither a restart of the process nor
// another replica restarts anything by itself, and none is forgotten. All
// fields but Quiet and PerHour are needed; Run must run.
type Restarts struct {
	Cluster Cluster
	// Quiet is how long a workload's Secrets must have been unchanged; 0: 10 s.
	// It waits quietMost times that at most.
	Quiet time.Duration
	// PerHour is how many restarts a namespace may have; 0: 60. They may come
	// at once.
	PerHour  int
	Listener RestartListener
	// Reporter is called with how it went with a workload, or a namespace.
	Reporter Reporter
	Log      *zap.Logger

	mu      sync.Mutex
	pending map[Workload]*doubt
	turns   turns.Turns[Workload] // of pending
	wake    wake.Wake
	missing map[string]map[string][]string // :: namespace → Secret → workloads; Run's only
	budgets map[string]*rate.Limiter       // :: namespace → its budget; Run's only
}

const (
	quietDefault   = 10 * time.Second
	quietMost      = 6
	perHourDefault = 60
)

// doubt is a workload that may have to be restarted.
type doubt struct {
	secrets     map[string]bool
	first, last time.Time // when the doubt arose
	notBefore   time.Time
	failures    int
}

// Check has the workloads of a namespace, each as "kind/name", compared with a
// Secret that they use: when it was written, and once at the start.
func (r *Restarts) Check(namespace, secret string, workloads []string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range workloads {
		kind, name, _ := strings.Cut(text, "/")
		r.addLocked(Workload{namespace, kind, name}, &doubt{secrets: map[string]bool{secret: true}, first: now, last: now})
	}
	r.wake.Rouse()
}

// SetLimits changes Quiet and PerHour.
func (r *Restarts) SetLimits(quiet time.Duration, perHour int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Quiet, r.PerHour = quiet, perHour
	for w, d := range r.pending {
		r.turns.Put(w.Namespace, w, r.due(d))
	}
	r.wake.Rouse()
}

// addLocked adds to what is in doubt about a workload.
func (r *Restarts) addLocked(w Workload, d *doubt) {
	defer func() { r.turns.Put(w.Namespace, w, r.due(r.pending[w])) }()
	known := r.pending[w]
	if known == nil {
		if r.pending == nil {
			r.pending = map[Workload]*doubt{}
		}
		r.pending[w] = d
		return
	}
	maps.Copy(known.secrets, d.secrets)
	if d.first.Before(known.first) {
		known.first = d.first
	}
	if d.last.After(known.last) {
		known.last = d.last
	}
	if d.failures > 0 {
		known.failures, known.notBefore = d.failures, d.notBefore
	}
}

// Run restarts what must be until ctx ends. What is left then, another Run
// finds when it is asked to check everything.
func (r *Restarts) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		w, d, wait := r.next(time.Now())
		if d != nil {
			r.settle(ctx, w, d)
			continue
		}
		timer.Reset(wait)
		select {
		case <-r.wake.C():
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// next takes the workload that has been due for longest, of the namespace whose
// turn it is. Without one it returns how long it is to the next.
func (r *Restarts) next(now time.Time) (w Workload, d *doubt, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, wait, due := r.turns.Take(now)
	if !due {
		if wait < 0 {
			wait = time.Hour
		}
		return w, nil, wait
	}
	d = r.pending[w]
	delete(r.pending, w)
	return w, d, 0
}

func (r *Restarts) due(d *doubt) time.Time {
	quiet := r.Quiet
	if quiet <= 0 {
		quiet = quietDefault
	}
	due := d.last.Add(quiet)
	if most := d.first.Add(quietMost * quiet); due.After(most) {
		due = most
	}
	if due.Before(d.notBefore) {
		due = d.notBefore
	}
	return due
}

const (
	clusterTimeout = 30 * time.Second
	firstRetry     = time.Second
	longestRetry   = time.Minute
)

// settle restarts the workload if it must be, and comes back to it later when
// it cannot now.
func (r *Restarts) settle(ctx context.Context, w Workload, d *doubt) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	secrets := slices.Sorted(maps.Keys(d.secrets))
	err := r.restart(ctx, w, secrets)
	over, budget := errors.AsType[*budgetError](err)
	_, gone := errors.AsType[*missingError](err)
	now := time.Now()
	r.note(w, secrets, gone)
	switch {
	case err == nil || gone: // one that is missing will be newer than what it missed
		r.Reporter.Report("restart of "+w.String(), nil)
		r.summarize(w.Namespace, now)
		return
	case budget:
		r.Reporter.Report("restarts in "+w.Namespace, err)
		d.notBefore = over.until
	default:
		if ctx.Err() == nil {
			r.Listener.NotRestarted(w, secrets, err)
		}
		r.Reporter.Report("restart of "+w.String(), err)
		d.failures++
		d.notBefore = now.Add(retryDelay(d.failures))
	}
	r.mu.Lock()
	r.addLocked(w, d)
	r.mu.Unlock()
	r.summarize(w.Namespace, now)
}
