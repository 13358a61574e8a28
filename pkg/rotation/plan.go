package rotation

import (
	"hash/fnv"
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

// findDue returns when the next version is due; zero means only on command.
func (s Schedule) findDue(set string, doc *versions.Document) time.Time {
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
	if again := s.findRetry(doc, primary); !at.IsZero() && again.After(at) {
		return again
	}
	return at
}

// findRetry returns when a version may be made, after those that failed since the primary.
func (s Schedule) findRetry(doc *versions.Document, primary versions.Version) (at time.Time) {
	var wait time.Duration
	for _, v := range doc.Versions {
		if v.Promoted.IsZero() && v.Made.After(primary.Made) {
			if v.Made.After(at) {
				at = v.Made
			}
			wait = min(max(2*wait, s.Retry), max(longestRetry, s.Retry))
		}
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
