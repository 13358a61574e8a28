// Package pipeline puts Syncer together: the parts that docs/architecture.md
// draws, wired as a configuration says, and started and stopped in order.
package pipeline

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// pipeline is the parts of Syncer, wired as one configuration says: a lane for
// each identity, the place where secrets go, and those who are told.
type pipeline struct {
	cfg     *config.Config
	workers int
	grace   time.Duration
	log     *zap.Logger
	host    *host // nil: nobody looks from outside
	// observe, when not nil, hears of every outcome.
	observe func(queue.Item, workers.Result)
	// deliveries outlives pipelines; nil: nothing is known to be deleted.
	deliveries *workers.Deliveries
	// files is the sink for files, which outlives pipelines too; nil: a new one.
	files *sinks.Files
	// tellers tell the application too, after the sentinel files.
	tellers []notify.Teller
	command *Command // nil: all goes to the place
	version string

	troubles *health.Troubles
	inbox    *inject.Inbox
	place    place
	lanes    []*lane
	status   *notify.Status // nil: there is no status folder
	app      *notify.Application

	renderings *notify.Renderings // nil: nothing is remembered
}

// Parts is what a pipeline has beside its configuration.
type Parts struct {
	// Workers is how many targets of an identity are worked on at once.
	Workers int
	// Grace is how long writes under way may go on when told to stop.
	Grace time.Duration
	Log   *zap.Logger
	// Observe, when not nil, is called with each outcome, by several goroutines.
	Observe func(queue.Item, workers.Result)
}

// Run does what cfg says until ctx ends or all is done; it follows no change of
// the configuration.
func Run(ctx context.Context, cfg *config.Config, parts Parts) error {
	p := &pipeline{cfg: cfg, workers: parts.Workers, grace: parts.Grace, log: parts.Log, observe: parts.Observe}
	return p.run(ctx)
}

// run makes the parts, starts them from the bottom to the top, waits until the
// job is done or ctx ends, and stops them from the top to the bottom. Nothing
// that it started outlives it. The error is nil only when the job was done.
func (p *pipeline) run(ctx context.Context) error {
	p.troubles = health.NewTroubles(p.log)
	defer p.stop()
	if err := p.build(); err != nil {
		return err
	}
	p.begin(ctx)
	intake, stop := context.WithCancel(ctx)
	defer stop()
	for _, l := range p.lanes {
		l.start(intake)
	}
	if p.host != nil {
		defer p.host.show(p)()
	}
	var top sync.WaitGroup
	for _, source := range p.sources() {
		top.Go(func() { source(intake) })
	}

	incomplete := p.untilDone(intake)
	stop()
	top.Wait()
	p.stop()
	return p.verdict(incomplete)
}

// begin does what comes before the first sync.
func (p *pipeline) begin(ctx context.Context) {
	if p.app != nil {
		p.troubles.Report("scripts", p.status.InstallScripts())
		p.troubles.Report(notify.UpdatedFile, p.app.Recover(ctx))
	}
	p.place.prepare(ctx)
	if p.app != nil {
		p.troubles.Report(notify.ProvidedFile, p.app.SayMissing())
	}
}

// stop stops the lanes, all at once; a second time it does nothing.
func (p *pipeline) stop() { p.each((*lane).stop) }

// sources lists what hints at targets: the polls, and what the place brings.
func (p *pipeline) sources() []func(context.Context) {
	run := p.place.sources()
	if !p.cfg.Mode.OneShot() {
		for _, l := range p.lanes {
			run = append(run, l.poll().Run)
		}
	}
	return run
}

// build makes the parts.
func (p *pipeline) build() (err error) {
	if err := p.openStatus(); err != nil {
		return err
	}
	p.inbox = inject.NewInbox(p.cfg.Conjur.InboxPath)
	p.place = p.newPlace()
	for _, identity := range p.cfg.Identities {
		l, err := p.newLane(identity)
		if err != nil {
			return err
		}
		p.lanes = append(p.lanes, l)
	}
	return nil
}

// openStatus opens the status folder. A sidecar that delivers files needs it,
// for its probes and the application's. Otherwise there may be none that can be
// written to: then nobody looks there.
func (p *pipeline) openStatus() (err error) {
	if p.cfg.Mode == config.ModeStandalone {
		p.openRenderings(notify.OpenStatus(p.cfg.Folders.Status))
		return nil
	}
	p.status, err = notify.NewStatus(p.cfg.Folders.Status)
	if err == nil && p.cfg.Mode.OneShot() && p.status.ReadOnly() {
		err = fmt.Errorf("status folder: %s: %w; mount a volume there if anybody looks at it", p.cfg.Folders.Status, syscall.EROFS)
	}
	if err != nil {
		if p.cfg.Destination == config.DestinationFile && !p.cfg.Mode.OneShot() {
			return err
		}
		p.log.Warn("Going on without a status folder", zap.Error(err))
		p.status = nil
		return nil
	}
	p.openRenderings(p.status)
	p.app = notify.NewApplication(p.status, p.keys, func(sentinel string) {
		p.log.Info("Sentinel file written", zap.String("file", sentinel))
	})
	p.app.Also(p.tellers...)
	return nil
}

// openRenderings finds out what earlier processes died of, where there is a
// status folder to remember it in.
func (p *pipeline) openRenderings(status *notify.Status) {
	var err error
	if p.renderings, err = status.NewRenderings(); err != nil {
		p.log.Debug("Renderings are not remembered", zap.Error(err))
		p.renderings = nil
	}
}

// keys lists the keys of all targets.
func (p *pipeline) keys() (keys []targets.Key) {
	for _, l := range p.lanes {
		keys = append(keys, l.targets.Keys()...)
	}
	return keys
}

// settled spreads the news of an outcome.
func (p *pipeline) settled(l *lane, item queue.Item, r workers.Result) {
	switch {
	case p.app == nil:
	case r.Err == nil:
		p.app.Delivered(r.Key)
	default:
		p.app.Failed(r.Key, r.Err)
	}
	p.place.settled(l, r)
	if p.host != nil {
		p.host.settled(l, item, r)
	}
	if p.observe != nil {
		p.observe(item, r)
	}
}

// held spreads the news that removals are held back, or no longer are.
func (p *pipeline) held(l *lane, e variables.HoldEvent) {
	p.place.held(l, e)
	if p.host != nil {
		p.host.held(l, e)
	}
}

// untilDone waits until there is nothing left to do, or ctx ends: a one-shot
// process has delivered or given up every target, a sidecar has removed what
// was revoked and brought all else up to date. The error is of what could not
// be found out.
func (p *pipeline) untilDone(ctx context.Context) error {
	if p.cfg.Mode.OneShot() {
		err := p.place.complete(ctx)
		p.each(func(l *lane) { l.lastRetries(ctx) }) // verdict looks at what was delivered
		return err
	}
	revoked := make(chan struct{})
	var once sync.Once
	ended, stop := context.WithCancel(ctx)
	p.each(func(l *lane) {
		select {
		case <-ended.Done():
		case <-l.exitOnRevoked():
			once.Do(func() { close(revoked) })
			stop()
		}
	})
	stop()
	select {
	case <-revoked:
		p.each(func(l *lane) { l.lastSync(ctx, l.targets.Keys()) })
	default:
	}
	return nil
}

// each calls f for all lanes at once and waits.
func (p *pipeline) each(f func(*lane)) {
	var wg sync.WaitGroup
	for _, l := range p.lanes {
		wg.Go(func() { f(l) })
	}
	wg.Wait()
}
