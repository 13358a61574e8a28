package main

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// pipeline is the parts of Syncer, wired for one application.
type pipeline struct {
	cfg     *config.Config
	workers int
	grace   time.Duration
	log     *zap.Logger
	// observe, when not nil, hears of every outcome.
	observe func(queue.Item, workers.Result)

	targets   *targets.Set
	client    *conjur.Client
	listing   *listing
	templates *sources.Templates
	sink      *sinks.Files
	status    *notify.Status
	troubles  *health.Troubles

	queue  *queue.Queue
	rounds *notify.Rounds
	app    *notify.Application
	pool   *workers.Pool

	revoked chan struct{} // closed when something was removed
	once    sync.Once
}

// run makes the parts, starts them from the bottom to the top, waits until the
// job is done or ctx ends, and stops them from the top to the bottom. Nothing
// that it started outlives it. The error is nil only when the job was done.
func (p *pipeline) run(ctx context.Context) error {
	if err := p.build(); err != nil {
		return err
	}
	defer p.client.Close()
	p.troubles.Report("leftovers", p.sink.Clean(ctx, p.cfg.Targets))
	p.troubles.Report("scripts", p.status.InstallScripts())
	p.troubles.Report(notify.UpdatedFile, p.app.Recover(ctx))

	intake, stop := context.WithCancel(ctx)
	defer stop()
	telling, hush := context.WithCancel(context.WithoutCancel(ctx))
	defer hush()

	var top, middle, bottom sync.WaitGroup
	bottom.Go(func() { p.rounds.Run(telling) })
	middle.Go(func() { p.pool.Run(intake) })
	p.enqueue(queue.Hint{Trigger: "start", Wakes: true}, p.targets.Keys()...)
	for _, source := range p.sources() {
		top.Go(func() { source(intake) })
	}

	p.untilDone(intake)
	stop()
	top.Wait()
	middle.Wait()
	hush()
	bottom.Wait()
	return p.verdict()
}

func (p *pipeline) build() (err error) {
	if p.status, err = notify.NewStatus(p.cfg.Folders.Status); err != nil {
		return err
	}
	if p.client, err = newClient(p.cfg, p.log); err != nil {
		return err
	}
	p.targets = &targets.Set{}
	p.targets.Replace(p.cfg.Targets)
	p.listing = &listing{catalog: p.client.NewCatalog(), set: p.targets}
	p.sink = sinks.NewFiles(p.cfg.Folders.Secrets, nil)
	p.troubles = health.NewTroubles(p.log)
	p.templates = p.newTemplates()
	p.revoked = make(chan struct{})

	p.app = notify.NewApplication(p.status, p.targets.Keys, func(sentinel string) {
		p.log.Info("Sentinel file written", zap.String("file", sentinel))
	})
	p.rounds = &notify.Rounds{
		Announce: func(ctx context.Context) { p.troubles.Report(notify.UpdatedFile, p.app.Updated(ctx)) },
		Ended:    func(context.Context) { p.troubles.Report(notify.ProvidedFile, p.app.Provided()) },
	}
	p.queue = queue.New(p.queueConfig())
	p.pool = workers.NewPool(workers.PoolConfig{
		Work: p.queue,
		Syncer: &workers.Syncer{
			Targets:   p.targets,
			Values:    p.client,
			Templates: p.templates,
			Sink:      p.sink,
			Policy:    workers.Policy{RemoveRevoked: p.cfg.RemoveDeleted},
			List:      p.listing.first,
			Writing:   func(targets.Key) { p.troubles.Report("journal", p.app.Writing()) },
			Log:       p.log,
		},
		Workers: p.workers,
		Timeout: 3 * p.cfg.Conjur.HTTPTimeout,
		Grace:   p.grace,
		Started: func(item queue.Item) { p.rounds.Started(item.Key) },
		Settled: p.settled,
	})
	return nil
}

// enqueue is how a source hands hints to the queue: as one round.
func (p *pipeline) enqueue(h queue.Hint, keys ...targets.Key) {
	p.rounds.Begin(keys)
	p.rounds.Drop(p.queue.Add(h, keys...))
}

// settled spreads the news of an outcome.
func (p *pipeline) settled(item queue.Item, r workers.Result) {
	if r.Err == nil {
		p.app.Delivered(r.Key)
	}
	p.rounds.Settled(r.Key, r.Wrote)
	p.troubles.Report(string(r.Key), r.Err)
	if r.Removed {
		p.once.Do(func() { close(p.revoked) })
	}
	if p.observe != nil {
		p.observe(item, r)
	}
}

// untilDone waits until there is nothing left to do, or ctx ends: a one-shot
// process has delivered or given up every target, a sidecar has removed what
// was revoked and brought all else up to date.
func (p *pipeline) untilDone(ctx context.Context) {
	if p.cfg.Mode.OneShot() {
		_ = p.queue.WaitDone(ctx) // verdict looks at what was delivered
		return
	}
	select {
	case <-ctx.Done():
	case <-p.exitOnRevoked():
		p.lastSync(ctx)
	}
}

// exitOnRevoked is closed when the process has to end because of a removal.
func (p *pipeline) exitOnRevoked() <-chan struct{} {
	if !p.cfg.ExitOnRevoked && !p.cfg.Mode.OneShot() {
		return nil
	}
	return p.revoked
}
