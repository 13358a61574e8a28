package pipeline

import (
	"context"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Outcome is the result of one sync.
type Outcome struct {
	workers.Result
	Identity string // the identity that reads the target
	Item     queue.Item
}

// word returns the name of the outcome in metrics and traces.
func (o Outcome) word() string {
	switch {
	case o.Removed:
		return health.OutcomeRemoved
	case o.Err != nil:
		return health.OutcomeFailed
	case o.Wrote:
		return health.OutcomeWritten
	}
	return health.OutcomeUnchanged
}

// Hold reports that the brake holds removals back, or has released them.
type Hold struct {
	variables.HoldEvent
	Identity string
	Keys     []targets.Key // of the targets with these variables
}

// Listeners are called from several goroutines, and must not block.
type (
	// SettledListener is called with each outcome.
	SettledListener interface{ Settled(Outcome) }
	// HeldListener is called with each hold.
	HeldListener interface{ Held(Hold) }
	// AskedListener is called with each request to Conjur.
	AskedListener interface {
		Asked(identity string, e conjur.Exchange)
	}
)

// listeners are all registered listeners.
type listeners struct {
	settled []SettledListener
	held    []HeldListener
	asked   []AskedListener
}

// listen registers somebody for every event that it implements; nil is ignored.
func (ls *listeners) listen(somebody any) {
	if l, ok := somebody.(SettledListener); ok {
		ls.settled = append(ls.settled, l)
	}
	if l, ok := somebody.(HeldListener); ok {
		ls.held = append(ls.held, l)
	}
	if l, ok := somebody.(AskedListener); ok {
		ls.asked = append(ls.asked, l)
	}
}

// troubleLog logs when targets begin to fail and when they recover. The lane decided what
// to log when the outcome was settled.
type troubleLog struct{ *health.Troubles }

func (l troubleLog) Settled(o Outcome) {
	before, after := o.Before.Trouble, o.After.Trouble
	if o.Err != nil && after.Logged != before.Logged || o.Err == nil && before.Times > 0 {
		l.Log(string(o.Key), o.Err, before, after, o.Span.Fields()...)
	}
	if subject := string(o.Key) + " under another name"; o.Moved != nil {
		l.Report(subject, o.Moved)
	} else if len(o.After.Former) == 0 && len(o.Before.Former) > 0 {
		l.Report(subject, nil)
	}
}

// counts adapts the metrics to a listener.
type counts struct{ *health.Metrics }

func (c counts) Settled(o Outcome) { c.Sync(o.Identity, o.word(), o.Item.Since) }

func (c counts) Held(h Hold) {
	held := 0
	if h.State == variables.HoldBegan {
		held = h.Gone
	}
	c.Metrics.Held(h.Identity, held, h.State == variables.HoldBegan)
}

func (c counts) Asked(identity string, e conjur.Exchange) {
	c.Request(identity, string(e.Kind), e.Status, e.Duration)
}

// spans ends the span of each sync.
type spans struct{}

func (spans) Settled(o Outcome) {
	o.Span.End(o.Err, map[string]string{
		"identity": o.Identity, "outcome": o.word(), "trigger": o.Item.Trigger, "since": o.Item.Since.UTC().Format(time.RFC3339Nano),
	})
}

// journaled is a sink that leaves a mark before each write about which Syncer must notify
// the application. See notify.Application.Writing.
type journaled struct {
	workers.Sink
	pipeline *pipeline
}

func (j journaled) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if !c.Empty() && !c.Restores {
		j.pipeline.troubles.Report("journal", j.pipeline.app.Writing())
	}
	return j.Sink.Apply(ctx, r, c)
}

// RemoveFormer implements workers.Mover.
func (j journaled) RemoveFormer(former []string, taken func(path string) bool) (sinks.Cleared, error) {
	if mover, ok := j.Sink.(workers.Mover); ok {
		return mover.RemoveFormer(former, taken)
	}
	return sinks.Cleared{}, nil
}

// announcer notifies the application of the updates in its rounds.
type announcer struct{ *pipeline }

func (a announcer) Announce(ctx context.Context) {
	a.troubles.Report(notify.UpdatedFile, a.app.Updated(ctx))
}

func (a announcer) Ended(context.Context) {
	if a.synced() == nil {
		a.troubles.Report(notify.ProvidedFile, a.app.Provided())
	}
}

func (a announcer) Retry(ctx context.Context) (done bool) { return a.app.Retry(ctx, a.troubles.Report) }
