package rotation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/targets"
)

// Changes reports the names of changed variables. With an error, the names are still
// valid, but others may have changed too.
type Changes interface {
	Changed(ctx context.Context, ids []string) ([]string, error)
}

// Config configures a Rotator.
type Config struct {
	Conjur  Client
	Changes Changes
	Sets    []Plan
	Targets Targets // nil: no targets show a step
	Seen    *Seen   // nil: only Targets keep steps after the process ends
	// Owner is the name of this controller in the sets.
	Owner   string
	PerHour int  // maximum number of versions begun per hour; 0: no limit
	Paused  bool // nothing is changed
	// FromPolicy uses the annotations of published variables for settings that the sets
	// leave open.
	FromPolicy bool
	// Interval is the time between checks whether somebody else changed a set; 0 means no
	// checks.
	Interval time.Duration
	// Timeout limits one step, in addition to the acts of a set with a Timeout.
	Timeout time.Duration
	// Retry is the delay before a failed step is retried. It doubles with each failure,
	// up to five minutes. Default: one second.
	Retry time.Duration
	// Quiet is how long a write of an earlier process may still be in flight, on a server
	// without compare-and-swap.
	Quiet time.Duration
	// Watch is the maximum time that this process must have seen a version without
	// consumers before it revokes the version. Default: 10 minutes.
	Watch time.Duration
	// Calm is how long a published variable must have been unchanged before it is
	// written, if the policy requests the server's own rotator. Default: 10 seconds, but
	// at most a third of Timeout.
	Calm     time.Duration
	Reports  []Report    // earlier reports about the sets
	Listener Listener    // nil: no listener
	Log      *zap.Logger // nil: no logging
}

// Rotator rotates sets. In a loop, it reads a set, gathers the other facts, asks
// versions.Next which action is due, and carries it out.
type Rotator struct {
	config       Config
	server       *server
	sets         map[string]*rotated
	once         bool
	tried        time.Duration // how long an outside outcome counts; triedFor, except in tests
	startLimiter startLimiter
	queue        *queue.Queue    // made by Run and Once; its keys are the ids of sets
	polledOnce   map[string]bool // variables that a poll has checked once
	// unchecked means that the last check for changes by others failed.
	unchecked bool
}

const (
	// workers is the number of sets processed concurrently.
	workers = 4
	// onceRetries is how often Once retries a step that fails.
	onceRetries = 5
	// longestBackoff limits the delay before a failed step is retried.
	longestBackoff = 5 * time.Minute
	// mostActs is the maximum number of outside acts in a step: one before the
	// revocation, and three for the revocation.
	mostActs = 4
	// triedFor is how long an outside outcome counts as a fact.
	triedFor = time.Minute
	// shortest and longest limit the time between two checks of a closed gate. The time
	// is a tenth of how long the gate has been closed. Faulty annotations are read again
	// after longest.
	shortest = time.Second
	longest  = 30 * time.Second
	// verifiedFor is how long a login counts as good after its use, while its set is
	// idle.
	verifiedFor = time.Hour
)

// New returns a Rotator that has not started.
func New(config Config) *Rotator {
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	config.Timeout, config.Retry = cmp.Or(config.Timeout, time.Minute), cmp.Or(config.Retry, time.Second)
	config.Watch, config.Calm = cmp.Or(config.Watch, 10*time.Minute), cmp.Or(config.Calm, 10*time.Second)
	r := &Rotator{
		config: config, server: &server{begin: time.Now()}, sets: map[string]*rotated{}, polledOnce: map[string]bool{}, tried: triedFor,
		startLimiter: startLimiter{perHour: config.PerHour, begun: map[string][]time.Time{}, failed: map[string][]string{}},
	}
	for _, set := range config.Sets {
		set.Policy.Owner, set.Policy.Outside = config.Owner, set.Actuator != nil
		s := newRotated(set, config, r.server)
		r.sets[set.ID], r.startLimiter.sets = s, append(r.startLimiter.sets, s.stored)
	}
	for _, report := range config.Reports {
		if s := r.sets[report.Set]; s != nil {
			s.report.Store(&report)
		}
	}
	return r
}

// start logs the limits of this process's knowledge, and prevents writes that are too
// early.
func (r *Rotator) start() {
	r.server.quiet(r.config.Quiet)
	var unknown []string
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		if r.config.Targets == nil && r.config.Seen.step(id) == 0 {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		r.config.Log.Info("No target shows which step was delivered last. Set rotation.paused before you restore a backup of Conjur, and claim the sets afterwards",
			zap.Strings("sets", unknown))
	}
}

// beginStep returns a step of a set.
func (r *Rotator) beginStep(s *rotated) *step {
	return &step{set: s, config: &r.config, startLimiter: &r.startLimiter, once: r.once, tried: r.tried, doc: versions.New(r.config.Owner)}
}

// Run rotates until ctx ends. It returns after the current steps have finished.
func (r *Rotator) Run(ctx context.Context) {
	r.runWorkers(ctx, -1, func() {
		r.warnOfUnpublished(ctx)
		r.poll(ctx)
		<-ctx.Done()
	})
}

// Once does everything that is possible now: it advances each set until the set must
// wait. The error lists the sets that did not get that far, with the reasons.
func (r *Rotator) Once(ctx context.Context) error {
	r.once = true
	var errs []error
	r.runWorkers(ctx, onceRetries, func() { errs = append(errs, r.queue.WaitDone(ctx)) })
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		errs = append(errs, wrapError(id, r.sets[id].err))
	}
	return errors.Join(errs...)
}

// runWorkers starts the workers, with all sets in the queue. After until has returned, it
// waits for the current steps.
func (r *Rotator) runWorkers(ctx context.Context, retries int, until func()) {
	r.start()
	r.queue = queue.New(queue.Config{Backoff: retry.Backoff{First: r.config.Retry, Max: longestBackoff}, Limit: retries})
	var all sync.WaitGroup
	defer all.Wait()
	defer r.queue.ShutDown()
	for id := range r.sets {
		r.enqueue("start", id)
	}
	// The queue keeps one worker free for other namespaces. All sets are one namespace, so
	// that worker never has work: start one more.
	for range min(workers, len(r.sets)) + 1 {
		all.Go(func() {
			for r.processNext(ctx) {
			}
		})
	}
	until()
}

// enqueue makes a set due now.
func (r *Rotator) enqueue(trigger, id string) {
	r.queue.Add(queue.Hint{Trigger: trigger, Wakes: true}, targets.Key(id))
}

// processNext takes a step of the next set that is due. It returns false after ShutDown.
func (r *Rotator) processNext(ctx context.Context) bool {
	items := r.queue.Take(func(int) int { return 1 })
	for _, item := range items {
		if ctx.Err() != nil {
			r.queue.Done(item.Key, ctx.Err())
		} else if again, err := r.Sync(ctx, string(item.Key)); err != nil || again < 0 {
			r.queue.Done(item.Key, err)
		} else {
			r.queue.DoneUntil(item.Key, again)
		}
	}
	return len(items) > 0
}

// Sync takes one step of a set. It returns the time until the next step; negative means
// that none is due before something changes. With an error, the step must be retried.
func (r *Rotator) Sync(ctx context.Context, id string) (again time.Duration, err error) {
	s := r.sets[id]
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout+mostActs*s.Timeout)
	defer cancel()
	step := r.beginStep(s)
	o, err := step.run(ctx)
	switch s.err = err; {
	case err == nil:
		s.failures = 0
		if r.once && o.waits {
			return -1, nil
		}
		return o.again, nil
	case errors.Is(err, ErrEarly):
		return r.server.untilWrites(), nil
	case errors.Is(err, ErrConflict) && !r.once:
		return 0, nil
	}
	s.failures++
	if r.config.Listener != nil {
		r.config.Listener.Failed(s.ID, step.doing)
	}
	if s.failures >= 3 {
		s.announcer.emitOnce(Event{Reason: EventFailed, Message: err.Error(), Warning: true})
	}
	r.config.Log.Debug("A step with a set failed", zap.String("set", id), zap.Error(err))
	return 0, err
}

// poll checks at each interval whether somebody else changed anything.
func (r *Rotator) poll(ctx context.Context) {
	if r.config.Interval <= 0 {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.config.Interval - time.Duration(rand.Float64()*float64(r.config.Interval)/10)):
		}
		r.pollSets(ctx)
	}
}

// pollSets schedules another read of the sets that somebody changed.
func (r *Rotator) pollSets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	of := map[string]*rotated{}
	var ids []string
	for _, s := range r.sets {
		if s.moved.Swap(false) {
			r.enqueue("poll", s.ID)
		}
		for _, id := range *s.polled.Load() {
			of[id] = s
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	changed, err := r.config.Changes.Changed(ctx, ids)
	if ctx.Err() == nil {
		if err != nil && !r.unchecked {
			r.config.Log.Warn("Some sets could not be checked for changes by others", zap.Error(err))
		}
		r.unchecked = err != nil
	}
	for _, id := range ids { // the first poll cannot know of earlier changes
		if err == nil && !r.polledOnce[id] {
			r.polledOnce[id] = true
			changed = append(changed, id)
		}
	}
	for _, id := range changed {
		s := of[id]
		switch id {
		case s.ID: // each step reads it anyway
		case versions.ControlOf(s.ID):
			s.commands.arrived.Store(true)
		default:
			s.unmended.Store(true)
		}
		r.enqueue("poll", s.ID)
	}
}

// Delivered schedules an early check of a set if a namespace shows the set but the set
// does not note the namespace.
func (r *Rotator) Delivered(set, namespace string) {
	s := r.sets[set]
	if s == nil {
		return
	}
	if noted := s.namespaces.Load(); noted == nil || !(&versions.Document{Namespaces: *noted}).Shows(namespace) {
		s.moved.Store(true)
	}
}

// Reports returns the known status of all sets, in ascending order.
func (r *Rotator) Reports() (reports []Report) {
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		if report := r.sets[id].report.Load(); report != nil {
			reports = append(reports, *report)
		}
	}
	return reports
}

// rotated is a set with its plan, and the knowledge between two steps. Only the goroutine
// that holds the set's key uses it; other goroutines use only the atomic fields.
type rotated struct {
	Plan            // in effect: with the settings from policy
	configured Plan // without them
	stored     Set
	commands   commands
	publisher  publisher
	announcer  announcer

	unmended   atomic.Bool              // a published value may have changed: compare, and write it again
	moved      atomic.Bool              // a namespace that the set does not note shows it
	polled     atomic.Pointer[[]string] // the variables that the poll checks
	namespaces atomic.Pointer[[]string] // the noted namespaces; nil: unknown
	report     atomic.Pointer[Report]

	hasValue    bool                 // the variable had a value at the last read
	seen        uint64               // the highest step that a target showed or this process saw
	annotated   time.Time            // when the annotations were read
	faults      string               // of the annotations; the set waits until they are corrected
	verified    time.Time            // when the primary was last used successfully
	watched     map[string]time.Time // since when this process has seen a version without consumers
	unread      []Shown              // targets that show it but can no longer be read
	unreadEvent string               // the last Event that named them
	future      string               // says which version has a time in the future
	waitsFor    string               // why it waits; empty: it does not
	failures    int                  // in a row
	err         error                // of the last step
}

// newRotated returns a set of which nothing is known yet.
func newRotated(plan Plan, config Config, server *server) *rotated {
	s := &rotated{
		Plan: plan, configured: plan, stored: Set{Conjur: config.Conjur, ID: plan.ID, server: server},
		publisher: publisher{conjur: config.Conjur, publish: plan.Publish, adopt: plan.Adopt, calm: min(config.Calm, config.Timeout/3)},
		announcer: announcer{set: plan.ID, log: config.Log, listener: config.Listener},
		watched:   map[string]time.Time{}, seen: config.Seen.step(plan.ID),
	}
	s.commands.set, s.commands.events = s.stored, &s.announcer
	s.commands.arrived.Store(true)
	s.unmended.Store(true)
	s.polled.Store(&[]string{})
	return s
}

// storePolled stores the variables with a value, which the poll must check.
func (s *rotated) storePolled() {
	ids := []string{}
	if s.hasValue {
		ids = slices.AppendSeq([]string{s.ID}, maps.Keys(s.Publish))
	}
	if s.commands.declared {
		ids = append(ids, versions.ControlOf(s.ID))
	}
	s.polled.Store(&ids)
}

// annotatedFor is how long the annotations stay valid after they were read, unless they
// have a fault.
const annotatedFor = 10 * time.Minute

// annotatedAgain returns for how long the annotations that were read are valid.
func (s *rotated) annotatedAgain() time.Duration {
	if s.faults != "" {
		return longest
	}
	return annotatedFor
}

// watchRetiring records since when this process has seen versions without consumers.
func (s *rotated) watchRetiring(doc *versions.Document) {
	for _, v := range doc.Versions {
		if v.State != versions.Retiring || v.Left.IsZero() {
			delete(s.watched, v.ID)
		} else if s.watched[v.ID].IsZero() {
			s.watched[v.ID] = time.Now()
		}
	}
}
