package rotation

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Client is the part of the Conjur client that a Rotator needs.
type Client interface {
	Conjur
	Variable(ctx context.Context, id, etag string) conjur.Values
	Resource(ctx context.Context, t *conjur.Token, id string) (conjur.Resource, conjur.Reading)
	List(ctx context.Context, length, offset int, etag string) (conjur.Page, conjur.Reading)
	Time(ctx context.Context) (time.Time, error)
}

// Changes reports the names of changed variables. With an error, the names are still
// valid, but others may have changed too.
type Changes interface {
	Changed(ctx context.Context, ids []string) ([]string, error)
}

// Config configures a Rotator.
type Config struct {
	Conjur  Client
	Changes Changes
	Sets    []Rotated
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
	config Config
	server *server
	sets   map[string]*rotated
	once   bool
	tried  time.Duration // how long an outside outcome counts as a fact
	ledger ledger
	warn   sync.Once                                // about a server without compare-and-swap
	queue  workqueue.TypedDelayingInterface[string] // made by Run
	looked map[string]bool                          // sets that the poll has seen once
}

// workers is the number of sets processed concurrently.
const workers = 4

// New returns a Rotator that has not started.
func New(config Config) *Rotator {
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	if config.Timeout == 0 {
		config.Timeout = time.Minute
	}
	if config.Retry == 0 {
		config.Retry = time.Second
	}
	if config.Watch == 0 {
		config.Watch = 10 * time.Minute
	}
	if config.Calm == 0 {
		config.Calm = 10 * time.Second
	}
	r := &Rotator{config: config, server: &server{begin: time.Now()}, sets: map[string]*rotated{}, looked: map[string]bool{}, tried: triedFor, ledger: ledger{perHour: config.PerHour}}
	for _, set := range config.Sets {
		set.Policy.Owner, set.Policy.Outside = config.Owner, set.Actuator != nil
		s := &rotated{Rotated: set, configured: set, set: Set{Conjur: config.Conjur, ID: set.ID, server: r.server}, watched: map[string]time.Time{}, seen: config.Seen.step(set.ID)}
		s.commanded.Store(true)
		s.unmended.Store(true)
		s.polled.Store(&[]string{})
		r.sets[set.ID] = s
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

// Run rotates until ctx ends. It returns after the current steps have finished.
func (r *Rotator) Run(ctx context.Context) {
	r.start()
	r.queue = workqueue.NewTypedDelayingQueue[string]()
	var all sync.WaitGroup
	for range min(workers, len(r.sets)) {
		all.Go(func() {
			for r.processNext(ctx) {
			}
		})
	}
	for id := range r.sets {
		r.queue.Add(id)
	}
	r.warnOfUnpublished(ctx)
	r.poll(ctx)
	<-ctx.Done()
	r.queue.ShutDown()
	all.Wait()
}

func (r *Rotator) processNext(ctx context.Context) bool {
	id, shut := r.queue.Get()
	if shut {
		return false
	}
	defer r.queue.Done(id)
	if ctx.Err() != nil {
		return true
	}
	if again := r.Sync(ctx, id); again >= 0 {
		r.queue.AddAfter(id, again)
	}
	return true
}

// Once does everything that is possible now: it advances each set until the set must
// wait. The error lists the sets that did not get that far, with the reasons.
func (r *Rotator) Once(ctx context.Context) error {
	r.start()
	r.once = true
	var all sync.WaitGroup
	errs := make(chan error, len(r.sets))
	turns := make(chan struct{}, workers)
	for _, s := range r.sets {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs <- errorOf(s.ID, r.untilItWaits(ctx, s))
		})
	}
	all.Wait()
	close(errs)
	var joined []error
	for err := range errs {
		joined = append(joined, err)
	}
	return errors.Join(joined...)
}

// untilItWaits advances one set until it must wait. It retries failures a few times.
func (r *Rotator) untilItWaits(ctx context.Context, s *rotated) error {
	for failures := 0; ; {
		err := ctx.Err()
		var outcome outcome
		if err == nil {
			outcome, err = r.step(ctx, s)
		}
		early := errors.Is(err, ErrEarly)
		switch {
		case err == nil && outcome.waits:
			return nil
		case err == nil:
			failures = 0
			continue
		case ctx.Err() != nil || failures >= 5 && !early:
			return err
		case !early:
			failures++
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.retryAfter(failures)):
		}
	}
}

// retryAfter returns the delay after the given number of failures in a row.
func (r *Rotator) retryAfter(failures int) time.Duration {
	d := min(r.config.Retry<<min(max(failures-1, 0), 9), 5*time.Minute)
	return d - time.Duration(rand.Float64()*float64(d)/4)
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
		r.look(ctx)
	}
}

// look schedules another read of the sets that somebody changed.
func (r *Rotator) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	of := map[string]*rotated{}
	var ids []string
	for _, s := range r.sets {
		if s.news.Swap(false) {
			r.queue.Add(s.ID)
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
	if err != nil && ctx.Err() == nil {
		r.config.Log.Warn("Not all sets could be looked at", zap.Error(err))
	}
	for _, id := range ids { // changes before the first look are unknown
		if err == nil && !r.looked[id] {
			r.looked[id] = true
			changed = append(changed, id)
		}
	}
	for _, id := range changed {
		s := of[id]
		switch id {
		case s.ID: // each step reads it anyway
		case versions.ControlOf(s.ID):
			s.commanded.Store(true)
		default:
			s.unmended.Store(true)
		}
		r.queue.Add(s.ID)
	}
}

// emit passes an Event to the listener.
func (r *Rotator) emit(s *rotated, e Event) {
	e.Set = s.ID
	level := zap.InfoLevel
	if e.Warning {
		level = zap.WarnLevel
	}
	r.config.Log.Log(level, e.Reason, zap.String("set", e.Set), zap.String("message", e.Message))
	if r.config.Listener != nil {
		r.config.Listener.Rotated(e)
	}
}
