package pipeline

import (
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// Hold reports that the brake holds removals back, or has released them.
type Hold struct {
	variables.HoldEvent
	Identity string
	Keys     []targets.Key // of the targets with these variables
}

// Listeners are called from several goroutines, and must not block.
type (
	// SettledListener is called with each outcome.
	SettledListener interface{ Settled(workers.Outcome) }
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

// add registers somebody for every event that it implements; nil is ignored.
func (ls *listeners) add(somebody any) {
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

func (l troubleLog) Settled(o workers.Outcome) {
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

// expiries adapts the notices of certificates that expire soon to a listener.
type expiries struct{ *notify.Expiring }

func (e expiries) Settled(o workers.Outcome) { e.Check(o.Key, o.After.Expires) }

// counts adapts the metrics to a listener.
type counts struct{ *health.Metrics }

func (c counts) Settled(o workers.Outcome) { c.Sync(o.Identity, o.Word(), o.Item.Since) }

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

func (spans) Settled(o workers.Outcome) {
	o.Span.End(o.Err, map[string]string{
		"identity": o.Identity, "outcome": o.Word(), "trigger": o.Item.Trigger, "since": o.Item.Since.UTC().Format(time.RFC3339Nano),
	})
}
