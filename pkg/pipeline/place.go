package pipeline

import (
	"context"
	"slices"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// place is where secrets go, and where it is known what belongs there.
type place interface {
	sink() workers.Sink
	templates() workers.Templates
	// altered finds the targets of a lane that are not as they were left.
	altered(*lane) []targets.Key
	// prepare finds out, before anything is written, what belongs there and
	// what an earlier process left behind, as far as it can.
	prepare(context.Context)
	// complete finds out the rest while the lanes of a one-shot process work,
	// and gives up as configured.
	complete(context.Context) error
	// sources watch what says what belongs there, and what else is to be done
	// while the lanes work.
	sources() []func(context.Context)
	// synced says what is not known yet of what belongs there. So does ready,
	// which only remarks on what will not be known before somebody grants the
	// right, unless that is everything.
	synced() error
	ready() (remarks []string, err error)
	// settled hears of each outcome, held of removals that are held back. Both
	// are called from several goroutines and do not block.
	settled(*lane, workers.Result)
	held(*lane, variables.HoldEvent)
}

// newPlace makes the place of the destination.
func (p *pipeline) newPlace() place {
	if p.cfg.Destination == config.DestinationFile {
		return newFilesPlace(p)
	}
	return newSecretsPlace(p)
}

// laneOf finds the lane of the identity that serves a Kubernetes Secret; nil
// when there is none.
func (p *pipeline) laneOf(namespace, name string) *lane {
	identity, ok := p.cfg.IdentityOf(namespace, name)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(p.lanes, func(l *lane) bool { return l.identity.Name == identity.Name })
	if i < 0 {
		return nil
	}
	return p.lanes[i]
}

// newLane makes the lane of an identity.
func (p *pipeline) newLane(identity config.Identity) (l *lane, err error) {
	parts := laneParts{
		cfg: p.cfg, identity: identity, workers: p.workers, grace: p.grace, version: p.version, log: p.log,
		inbox: p.inbox, sink: p.place.sink(), templates: p.place.templates(), deliveries: p.deliveries, renderings: p.renderings,
		altered:  p.place.altered,
		settled:  p.settled,
		announce: func(context.Context) {},
		ended:    func(context.Context) {},
		held:     p.held,
		report:   p.troubles.Report,
		beat:     func() error { return nil },
	}
	if p.command != nil {
		parts.sink = p.command.sink(parts.sink)
	}
	if p.host != nil && p.host.metrics != nil {
		name, metrics := identityName(identity), p.host.metrics
		parts.observe = func(e conjur.Exchange) { metrics.Request(name, string(e.Kind), e.Status, e.Duration) }
		parts.queues = metrics.Queues()
	}
	if p.app != nil {
		parts.announce = func(ctx context.Context) { p.troubles.Report(notify.UpdatedFile, p.app.Updated(ctx)) }
		parts.ended = func(context.Context) {
			if p.place.synced() == nil {
				p.troubles.Report(notify.ProvidedFile, p.app.Provided())
			}
		}
		parts.retry = func(ctx context.Context) bool { return p.app.Retry(ctx, p.troubles.Report) }
		parts.writing = func(targets.Key) { p.troubles.Report("journal", p.app.Writing()) }
		parts.beat = p.status.Beat
	}
	return newLane(parts)
}
