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
	"github.com/secretsync/syncer/pkg/workers"
)

// Parts is what a pipeline has beside its configuration. All but Workers and
// Log may be zero.
type Parts struct {
	// Workers is how many targets of an identity are worked on at once.
	Workers int
	// Grace is how long writes under way may go on when told to stop.
	Grace   time.Duration
	Version string // of the build
	Log     *zap.Logger
	// Command is what runs beside the pipeline.
	Command *Command
	// Listener is called with each outcome; it may be a HeldListener and an
	// AskedListener too.
	Listener SettledListener
}

// Run does what cfg says until ctx ends or all is done, and serves probes where it
// says so; it follows no change of the configuration.
func Run(ctx context.Context, cfg *config.Config, parts Parts) error {
	if cfg.Server.Address != "" {
		h, err := newHost(cfg, parts.Version, parts.Log)
		if err != nil {
			return err
		}
		return h.run(ctx, func(ctx context.Context) error {
			return (&pipeline{Parts: parts, settings: h.settings, set: &targets.Set{}, host: h}).run(ctx)
		})
	}
	return (&pipeline{Parts: parts, settings: newSettings(cfg), set: &targets.Set{}}).run(ctx)
}

// pipeline is the parts of Syncer, wired as one configuration says: a lane for
// each identity, the inputs that say what belongs in them, the sink where
// secrets go, and those who listen.
type pipeline struct {
	Parts
	*settings
	set  *targets.Set // which outlives pipelines
	host *host        // nil: nobody looks from outside

	troubles   *health.Troubles
	inbox      *inject.Inbox
	status     *notify.Status // nil: there is no status folder
	app        *notify.Application
	renderings *notify.Renderings // nil: nothing is remembered

	files   *files    // nil: secrets go to the cluster
	secrets *secrets  // nil: they go to files
	rotates *rotating // nil: no set is rotated
	sink    workers.Sink
	texts   *texts
	lanes   []*lane
	listeners

	taking  sync.Mutex // held while a configuration is taken up
	taken   *config.Config
	revoked chan struct{} // closed when something was removed, and the process ends for that
	once    sync.Once
}

// run makes the parts, starts them from the bottom to the top, waits until the
// job is done or ctx ends, and stops them from the top to the bottom. Nothing
// that it started outlives it. The error is nil only when the job was done.
func (p *pipeline) run(ctx context.Context) error {
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
	var top sync.WaitGroup
	for _, source := range p.sources() {
		top.Go(func() { source.Run(intake) })
	}
	if p.host != nil {
		defer p.host.show(p)()
	}

	incomplete := p.untilDone(intake)
	stop()
	top.Wait()
	p.stop()
	return p.verdict(incomplete)
}

// build makes the parts.
func (p *pipeline) build() (err error) {
	p.troubles, p.revoked, p.taken = health.NewTroubles(p.Log), make(chan struct{}), p.config()
	if err := p.openStatus(); err != nil {
		return err
	}
	p.inbox = inject.NewInbox(p.config().Conjur.InboxPath)
	p.texts = newTexts(p)
	p.listen(troubleLog{p.troubles})
	if p.host != nil && p.host.metrics != nil {
		p.listen(counts{p.host.metrics})
	}
	if p.config().Destination == config.DestinationFile {
		p.files = &files{pipeline: p, Files: sinks.NewFiles(p.config().Folders.Secrets, nil)}
		p.files.Limit(int64(p.config().SecretsSizeLimit) << 20)
		p.sink = p.Command.sink(p.files.Files)
	} else {
		p.secrets = newSecrets(p)
		p.sink = p.secrets.sink
		p.listen(p.secrets.news)
	}
	if p.app != nil {
		p.sink = journaled{p.sink, p}
	}
	p.listen(p.Listener)
	for _, identity := range p.config().Identities {
		l, err := newLane(p, identity)
		if err != nil {
			return err
		}
		p.lanes = append(p.lanes, l)
	}
	p.rotates, err = newRotating(p)
	return err
}

// openStatus opens the status folder. A sidecar that delivers files needs it,
// for its probes and the application's. Otherwise there may be none that can be
// written to: then nobody looks there.
func (p *pipeline) openStatus() (err error) {
	if p.config().Mode == config.ModeStandalone {
		p.openRenderings(notify.OpenStatus(p.config().Folders.Status))
		return nil
	}
	p.status, err = notify.NewStatus(p.config().Folders.Status)
	if err == nil && p.config().Mode.OneShot() && p.status.ReadOnly() {
		err = fmt.Errorf("status folder: %s: %w; mount a volume there if anybody looks at it", p.config().Folders.Status, syscall.EROFS)
	}
	if err != nil {
		if p.config().Destination == config.DestinationFile && !p.config().Mode.OneShot() {
			return err
		}
		p.Log.Warn("Going on without a status folder", zap.Error(err))
		p.status = nil
		return nil
	}
	p.openRenderings(p.status)
	p.app = notify.NewApplication(p.status, p.set, p.Log)
	return p.renewTellers()
}

// openRenderings finds out what earlier processes died of, where there is a
// status folder to remember it in.
func (p *pipeline) openRenderings(status *notify.Status) {
	var err error
	if p.renderings, err = status.NewRenderings(); err != nil {
		p.Log.Debug("Renderings are not remembered", zap.Error(err))
		p.renderings = nil
	}
}

// begin does what comes before the first sync.
func (p *pipeline) begin(ctx context.Context) {
	if p.app != nil {
		p.troubles.Report("scripts", p.status.InstallScripts())
		p.troubles.Report(notify.UpdatedFile, p.app.Recover(ctx))
	}
	if p.files != nil {
		p.files.prime(ctx)
	} else {
		p.secrets.prime(ctx)
	}
	if p.app != nil {
		p.troubles.Report(notify.ProvidedFile, p.app.SayMissing())
	}
}

// source runs until its context ends.
type source interface{ Run(context.Context) }

// sources lists what hints at targets, and what else is to be done while the
// lanes work.
func (p *pipeline) sources() (all []source) {
	if p.files != nil {
		all = p.files.sources()
	} else {
		all = p.secrets.sources()
	}
	if p.rotates != nil {
		all = append(all, p.rotates)
	}
	if !p.config().Mode.OneShot() {
		for _, l := range p.lanes {
			all = append(all, l.poll())
		}
	}
	return all
}

// stop stops the lanes, all at once; a second time it does nothing.
func (p *pipeline) stop() { p.each((*lane).stop) }

// each calls f for all lanes at once and waits.
func (p *pipeline) each(f func(*lane)) {
	var wg sync.WaitGroup
	for _, l := range p.lanes {
		wg.Go(func() { f(l) })
	}
	wg.Wait()
}

// enqueue hints at targets, each in its lane.
func (p *pipeline) enqueue(h queue.Hint, keys ...targets.Key) {
	for _, l := range p.lanes {
		var own []targets.Key
		for _, key := range keys {
			if _, ok := l.targets.Get(key); ok {
				own = append(own, key)
			}
		}
		if len(own) > 0 {
			l.enqueue(h, own...)
		}
	}
}

// take has targets synced that have changed, and those forgotten that are gone.
func (p *pipeline) take(h queue.Hint, changes []targets.Change) {
	for _, l := range p.lanes {
		var own []targets.Key
		for _, c := range changes {
			switch {
			case c.Lane != l.identity.Name:
			case c.Gone:
				l.forget(c.Key)
			default:
				own = append(own, c.Key)
			}
		}
		if len(own) > 0 {
			l.enqueue(h, own...)
		}
	}
}
