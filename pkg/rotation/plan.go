package rotation

import (
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Schedule says when new versions are made. The zero Schedule means on demand.
type Schedule struct {
	// Every is the time from one version to the next. Up to a tenth is subtracted, a
	// different share for each set, so that not all sets are due at once.
	Every  time.Duration
	Cron   cron.Schedule // nil: none
	Before time.Duration // lead time before the primary's certificate expires; 0: ignored
	// General means that none of these settings is specific to the set, so that a policy
	// may supply them.
	General bool
	// Retry is the minimum delay after a failed version before the next one. It doubles
	// with each failure, up to a day.
	Retry time.Duration
}

// longestRetry is the maximum delay between two failed versions, unless the schedule has
// a longer one.
const longestRetry = 24 * time.Hour

// next returns when the next version is due; zero means only on command.
func (s Schedule) next(set string, doc *versions.Document) time.Time {
	primary, used := doc.Primary()
	var at time.Time
	switch {
	case !used:
		at = time.Unix(0, 0)
	case s.Every > 0:
		at = primary.Made.Add(s.Every - time.Duration(float64(s.Every)*share(set)/10))
	case s.Cron != nil:
		at = s.Cron.Next(primary.Made.UTC())
	}
	if ends := primary.Expires(); s.Before > 0 && !ends.IsZero() {
		if before := ends.Add(-s.Before); at.IsZero() || before.Before(at) {
			at = before
		}
	}
	if at.IsZero() {
		return at
	}
	if again := s.again(doc, primary); again.After(at) {
		return again
	}
	return at
}

// again returns when a version may be made, after those that failed since the primary.
func (s Schedule) again(doc *versions.Document, primary versions.Version) (at time.Time) {
	var wait time.Duration
	for _, v := range doc.Versions {
		if v.Promoted.IsZero() && v.Made.After(primary.Made) {
			if v.Made.After(at) {
				at = v.Made
			}
			wait = min(max(2*wait, s.Retry), max(longestRetry, s.Retry))
		}
	}
	if at.IsZero() {
		return at
	}
	return at.Add(wait)
}

// share returns a number from 0 to 1 that is constant for each set.
func share(set string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(set))
	return float64(h.Sum32()) / (1 << 32)
}

// Plan is a set and its rotation settings.
type Plan struct {
	ID       string // of the variable
	Generate generate.Config
	Schedule Schedule
	Policy   versions.Policy
	// Consumers reports the progress of the set's consumers; nil means no consumers.
	Consumers Consumers
	// Actuator makes an outside system accept versions; nil means that the versions are
	// keys. Sets with the same Outside share its failures.
	Actuator actuators.Actuator
	Outside  string
	// Timeout is the time limit of one act of Actuator, which enforces the limit itself.
	// The step gets this time in addition to Config.Timeout; 0 adds nothing.
	Timeout time.Duration
	Publish map[string]render.Published // by the variable's id
	Adopt   map[string]string           // the variable's id, by the part that it becomes
}

// rotated is a set with its plan, and what is known of it between two steps. Only the
// goroutine that holds the set's key uses it, except for what is atomic.
type rotated struct {
	Plan            // in effect: with the settings from policy
	configured Plan // without them
	stored     Set
	commands   commands
	publisher  publisher
	announcer  announcer

	unmended   atomic.Bool              // a published value may have changed
	moved      atomic.Bool              // other namespaces may show it
	polled     atomic.Pointer[[]string] // the variables that the poll checks
	namespaces atomic.Pointer[[]string] // the noted namespaces; nil: unknown
	report     atomic.Pointer[Report]

	begun       bool                 // the variable had a value at the last read
	seen        uint64               // the highest step
	annotated   time.Time            // when the annotations were read
	unclear     string               // their faults
	verified    time.Time            // when the primary was last used successfully
	watched     map[string]time.Time // since when this process has seen a version without consumers
	unread      []Shown              // targets that show it but can no longer be read
	unreadEvent string               // the last Event that named them
	ahead       string               // which version has a time in the future
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
	if s.begun {
		ids = append(ids, s.ID)
	}
	if s.commands.declared {
		ids = append(ids, versions.ControlOf(s.ID))
	}
	for id := range s.Publish {
		if s.begun {
			ids = append(ids, id)
		}
	}
	s.polled.Store(&ids)
}

// annotatedFor is how long the annotations stay valid after they were read, unless they
// have a fault.
const annotatedFor = 10 * time.Minute

// annotatedAgain returns the time until the annotations are read again.
func (s *rotated) annotatedAgain() time.Duration {
	if s.unclear != "" {
		return longest
	}
	return annotatedFor
}

// watch records since when this process has seen versions without consumers.
func (s *rotated) watch(doc *versions.Document) {
	for _, v := range doc.Versions {
		if v.State != versions.Retiring || v.Left.IsZero() {
			delete(s.watched, v.ID)
		} else if s.watched[v.ID].IsZero() {
			s.watched[v.ID] = time.Now()
		}
	}
}

const (
	// shortest and longest limit the time between two checks of a closed gate. The time
	// is a tenth of how long the gate has been closed.
	shortest = time.Second
	longest  = 30 * time.Second
	// verifiedFor is how long a login counts as good after its use, while its set is
	// idle.
	verifiedFor = time.Hour
)
