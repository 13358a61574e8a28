package notify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/internal/fairqueue"
	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
)

// Cluster holds workloads and Secrets. A false bool means that the object does not exist,
// or has no revision.
type Cluster interface {
	PodTemplate(context.Context, targets.Workload) (targets.PodTemplate, bool, error)
	// Annotate adds annotations to the Pod template in one write; the cluster then
	// replaces the Pods. If the workload has changed since the read, Annotate writes
	// nothing and returns false.
	Annotate(ctx context.Context, w targets.Workload, read targets.PodTemplate, annotations map[string]string) (bool, error)
	Revision(ctx context.Context, namespace, secret string) (Revision, bool, error)
	// Remember stores at a Secret what the workload has.
	Remember(ctx context.Context, w targets.Workload, secret string, memo targets.RestartMemo) error
	// HasPodsOf reports whether the workload has Pods that were created at that time or
	// before.
	HasPodsOf(ctx context.Context, w targets.Workload, at time.Time) (bool, error)
}

// Restart is the restart of one workload, with its reasons.
type Restart struct {
	Workload targets.Workload
	Because  []RevisedSecret // at least one, in ascending order by name
}

// inNamespace returns "namespace/kind/name".
func inNamespace(w targets.Workload) string { return w.Namespace + "/" + w.String() }

// RevisedSecret is a Secret with a revision that a workload's Pods have not seen.
type RevisedSecret struct {
	Name     string
	From, To string // numbers of revisions; From is "" if none was noted
}

// String returns the reason for the restart: "db 3→4, tls 7→8".
func (r Restart) String() string {
	texts := make([]string, len(r.Because))
	for i, s := range r.Because {
		from := s.From
		if from == "" || from == targets.NeverRevised {
			from = "?"
		}
		texts[i] = s.Name + " " + from + "→" + s.To
	}
	return strings.Join(texts, ", ")
}

// RestartListener is called with each restart. Tried is called after each try, with the
// Secrets, in ascending order by name, and why the workload could not be read or
// restarted. nil means that it needs no restart any more. Reverted is called once with a
// restart that another client reverted, and the consequence. Missing is called, once for
// all of them, with the workloads that a Secret names but that do not exist.
type RestartListener interface {
	Restarted(Restart)
	Tried(w targets.Workload, secrets []string, err error)
	Reverted(w targets.Workload, secret, consequence string)
	Missing(namespace, secret string, err error)
}

// Reporter is called with the state of a subject; nil means no error.
type Reporter interface {
	Report(subject string, err error)
}

// Restarts restarts workloads after changes of the Secrets that they use. It notes the
// new revisions in their Pod templates, and remembers the restarts at the Secrets. It reads
// from the cluster each time which workloads need a restart. Therefore a restart of this process, or another replica,
// causes no restart, and no restart is forgotten. All fields except Quiet, PerHour
// and Wants are required; Run must run.
type Restarts struct {
	Cluster Cluster
	// Quiet is how long a workload's Secrets must have been unchanged; 0 means 10 s. The
	// maximum wait is quietMost times Quiet.
	Quiet time.Duration
	// PerHour is the maximum number of restarts of a namespace per hour; 0 means 60. They
	// may all happen at once.
	PerHour  int
	Listener RestartListener
	// Reporter is called with the state of a workload or a namespace.
	Reporter Reporter
	// Wants, if not nil, reports whether a Secret still names a workload to restart, and
	// this process still serves both.
	Wants func(w targets.Workload, secret string) bool
	Log   *zap.Logger

	mu      sync.Mutex
	pending map[targets.Workload]*pendingRestart
	turns   fairqueue.Delayed[targets.Workload] // of pending
	wake    wake.Wake
	missing map[string]map[string][]string // by namespace and Secret: workloads; only Run uses it
	budgets map[string]*rate.Limiter       // by namespace; only Run uses it
}

const (
	quietDefault   = 10 * time.Second
	quietMost      = 6
	perHourDefault = 60
)

// pendingRestart is a workload that may need a restart.
type pendingRestart struct {
	secrets     map[string]bool
	first, last time.Time // the first and the last change that asked for it
	notBefore   time.Time
	delays      *backoff.ExponentialBackOff // between retries; nil: it has not failed
	checks      int                         // number of the check of an earlier restart; 0: a change asked for it
	missing     bool                        // the workload did not exist at the last attempt
}

// Check compares the workloads of a namespace, each as "kind/name", with a Secret that
// they use. Call it after each write of the Secret, and once at the start.
func (r *Restarts) Check(namespace, secret string, workloads []string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range workloads {
		r.addLocked(targets.WorkloadIn(namespace, text), &pendingRestart{secrets: map[string]bool{secret: true}, first: now, last: now})
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

// addLocked adds to the need of a workload for a restart.
func (r *Restarts) addLocked(w targets.Workload, d *pendingRestart) {
	defer func() { r.turns.Put(w.Namespace, w, r.due(r.pending[w])) }()
	known := r.pending[w]
	if known == nil {
		if r.pending == nil {
			r.pending = map[targets.Workload]*pendingRestart{}
		}
		r.pending[w] = d
		return
	}
	maps.Copy(known.secrets, d.secrets)
	switch {
	case d.checks > 0: // whatever is pending checks too
		return
	case known.checks > 0:
		d.secrets = known.secrets
		*known = *d
		return
	}
	if d.first.Before(known.first) {
		known.first = d.first
	}
	if d.last.After(known.last) {
		known.last = d.last
	}
	if d.delays != nil {
		known.delays, known.notBefore = d.delays, d.notBefore
	}
}

// Run restarts workloads as needed until ctx ends. Another Run finds the remaining ones
// when all Secrets are checked again.
func (r *Restarts) Run(ctx context.Context) {
	r.wake.Loop(ctx, func() time.Duration {
		w, d, wait := r.next(time.Now())
		if d != nil {
			r.attempt(ctx, w, d)
		}
		return wait
	})
}

// next removes and returns the workload that has been due for longest, from the namespace
// whose turn it is. If none is due, it returns the time until the next one.
func (r *Restarts) next(now time.Time) (w targets.Workload, d *pendingRestart, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, wait, due := r.turns.Take(now)
	if due {
		d = r.pending[w]
		delete(r.pending, w)
	}
	return w, d, wait
}

func (r *Restarts) due(d *pendingRestart) time.Time {
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
)

// attempt restarts the workload if it needs that, and schedules a retry if a restart is
// not possible now.
func (r *Restarts) attempt(ctx context.Context, w targets.Workload, d *pendingRestart) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	r.dropUnnamed(w, d)
	secrets := slices.Sorted(maps.Keys(d.secrets))
	var restarted bool
	var err error
	if len(secrets) > 0 {
		restarted, err = r.restart(ctx, w, secrets, d.checks > 0)
	}
	over, budget := errors.AsType[*budgetError](err)
	_, gone := errors.AsType[*MissingWorkloadError](err)
	now := time.Now()
	if !gone || !d.missing { // a missing one is reported once
		r.recordMissing(w, secrets, gone)
	}
	d.missing = gone
	if ctx.Err() == nil || err == nil {
		r.Listener.Tried(w, secrets, err)
	}
	switch {
	case err == nil || gone: // a missing one will be newer than the change it missed
		r.Reporter.Report("restart of "+inNamespace(w), nil)
		r.checkLater(w, d, restarted, now)
		r.summarize(w.Namespace, now)
		return
	case budget:
		r.Reporter.Report("restarts in "+w.Namespace, err)
		d.notBefore = over.until
	default:
		r.Reporter.Report("restart of "+inNamespace(w), err)
		if d.delays == nil {
			d.delays = retry.Backoff{First: firstRetry}.Start()
		}
		d.notBefore = now.Add(d.delays.NextBackOff())
	}
	r.mu.Lock()
	r.addLocked(w, d)
	r.mu.Unlock()
	r.summarize(w.Namespace, now)
}

// The owner of a workload may revert a restart before all Pods were replaced.
const (
	firstCheck = time.Minute
	mostChecks = 3 // each four times as long after the one before
)

// checkLater schedules the next check of a restart. The checks for a missing workload end
// only when it exists, or when no Secret names it.
func (r *Restarts) checkLater(w targets.Workload, d *pendingRestart, restarted bool, now time.Time) {
	check := &pendingRestart{secrets: d.secrets, first: now, last: now, checks: 1, missing: d.missing}
	switch {
	case d.missing:
		check.checks = min(d.checks+1, mostChecks)
	case restarted:
	case d.checks == 0 || d.checks == mostChecks:
		return
	default:
		check.checks = d.checks + 1
	}
	check.notBefore = now.Add(firstCheck << (2 * (check.checks - 1)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(w, check)
}
