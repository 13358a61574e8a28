// Package pipeline assembles Syncer from the parts in docs/architecture.md. It wires them
// as a configuration says, and starts and stops them in order.
package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Parts are the inputs of a pipeline in addition to its configuration. All but Workers
// and Log may be zero.
type Parts struct {
	// Workers is that of workers.PoolConfig, for each identity.
	Workers int
	// Grace is how long writes in progress may continue after ctx has ended.
	Grace   time.Duration
	Version string // of the build
	Log     *zap.Logger
	// Command runs next to the pipeline.
	Command *Command
	// Listener is called with each outcome; it may also be a HeldListener and an
	// AskedListener.
	Listener SettledListener
	Traces   *traces.Tracer
}

// Run applies cfg until ctx ends or the job is done, and serves probes if cfg says so. It
// does not follow changes of the configuration.
func Run(ctx context.Context, cfg *config.Config, parts Parts) error {
	p := &pipeline{Parts: parts, set: newSet(cfg)}
	p.wire(wiring{cfg: cfg})
	if cfg.Server.Address == "" {
		return p.run(ctx)
	}
	h, err := newHost(cfg, parts.Version, parts.Log)
	if err != nil {
		return err
	}
	p.host = h
	return h.run(ctx, p.run)
}

// pipeline contains the parts of Syncer, wired as the configuration says. It has a lane
// for each identity, the inputs that define their targets, the sink for secrets, and the
// listeners.
type pipeline struct {
	Parts
	set  *records.Set // outlives pipelines
	host *host        // nil without probes and metrics

	troubles   *health.Troubles
	reach      connect.Options
	status     *notify.Status // nil without a status folder
	app        *notify.Application
	renderings *notify.Renderings // nil: nothing is remembered

	files   *files   // nil if secrets go to the cluster
	secrets *secrets // nil if secrets go to files
	sink    workers.Sink
	texts   *texts
	expires *expiring
	listeners

	wired   atomic.Pointer[wiring]
	taking  sync.Mutex    // held while another configuration is applied
	running runner        // runs the sources; it has no context before the start and after the end
	revoked chan struct{} // closed when a removal ends the process
	once    sync.Once
}

// wiring is a configuration and the parts made for each item of its lists.
type wiring struct {
	cfg     *config.Config
	lanes   []*lane            // one for each identity
	watches []*sources.Secrets // of Secrets; one for each namespace
	rotates *rotating          // nil if no set is rotated
}

func (p *pipeline) wire(w wiring) { p.wired.Store(&w) }

func (p *pipeline) config() *config.Config { return p.wired.Load().cfg }

func (p *pipeline) lanes() []*lane { return p.wired.Load().lanes }

// run makes the parts, and starts them from the bottom to the top. It waits until the job
// is done or ctx ends, and stops the parts from the top to the bottom. Nothing that it
// started outlives it. The error is nil only if the job was done.
func (p *pipeline) run(ctx context.Context) error {
	defer p.stop()
	if err := p.build(); err != nil {
		return err
	}
	if p.files != nil && p.host != nil {
		defer p.host.metrics.WatchFolder(p.files)()
	}
	if p.secrets != nil {
		defer p.host.metrics.WatchSets(p.measured)()
	}
	p.begin(ctx)
	intake, stop := context.WithCancel(ctx)
	defer stop()
	p.start(intake)
	if p.host != nil {
		defer p.host.show(p)()
	}

	incomplete := p.untilDone(intake)
	stop()
	p.end()
	p.wired.Load().rotates.close(nil)
	p.stop()
	return p.verdict(incomplete)
}

// start runs the lanes and the sources until ctx ends.
func (p *pipeline) start(ctx context.Context) {
	for _, l := range p.lanes() {
		l.start(ctx)
	}
	p.running.ctx = ctx
	p.running.start(p.sources())
}

// end waits for the sources, whose context has ended. Afterwards the pipeline applies no
// change of the configuration.
func (p *pipeline) end() {
	p.taking.Lock()
	defer p.taking.Unlock()
	p.running.keep(nil)
	p.running.ctx = nil
}

// build makes the parts.
func (p *pipeline) build() (err error) {
	p.troubles, p.revoked = health.NewTroubles(p.Log), make(chan struct{})
	if err := p.openStatus(); err != nil {
		return err
	}
	p.reach = connect.Options{Version: p.Version, Inbox: inject.NewInbox(p.config().Conjur.InboxPath), Log: p.Log}
	if p.host != nil && p.host.cluster != nil {
		p.reach.MayWrite = p.host.cluster.MayWrite
	}
	p.texts = newTexts(p)
	p.listen(troubleLog{p.troubles})
	if p.host != nil && p.host.metrics != nil {
		p.listen(counts{p.host.metrics})
	}
	if p.config().Destination == config.DestinationFile {
		p.files = newFiles(p)
		p.files.Limit(int64(p.config().SecretsSizeLimit) << 20)
		p.sink = p.Command.sink(p.files.Files)
	} else {
		p.secrets = newSecrets(p)
		p.sink = p.secrets.sink
		p.listen(p.secrets.news)
		p.listen(p.secrets.fights)
		p.listen(deliveries{p})
	}
	if p.app != nil {
		p.sink = journaled{p.sink, p}
	}
	p.expires = &expiring{pipeline: p, said: map[targets.Key]notice{}}
	p.listen(p.expires)
	p.listen(p.Listener)
	if p.Traces != nil {
		p.listen(spans{})
	}
	w := wiring{cfg: p.config()}
	if w.lanes, err = p.newLanes(w.cfg, w.cfg.Identities); err != nil {
		return err
	}
	for _, l := range w.lanes {
		l.targets.Renew()
	}
	if p.secrets != nil {
		w.watches = p.secrets.watching(w.cfg)
	}
	if w.rotates, err = newRotating(p, w.cfg, wiring{}); err != nil {
		stopAll(w.lanes)
		return err
	}
	p.wire(w)
	return nil
}

// newLanes makes either all lanes or none. They do nothing yet.
func (p *pipeline) newLanes(cfg *config.Config, identities []config.Identity) (made []*lane, err error) {
	for _, identity := range identities {
		l, err := newLane(p, cfg, identity)
		if err != nil {
			stopAll(made)
			return nil, err
		}
		made = append(made, l)
	}
	return made, nil
}

// openStatus opens the status folder. A sidecar that delivers files needs it, for its own
// probes and the application's. In other modes a writable folder may be absent, because
// nobody reads it.
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
	notifiers, err := p.notifiers(p.config())
	p.app.SetNotifiers(notifiers...)
	return err
}

// openRenderings finds out why earlier processes died, if there is a status folder to
// remember it in.
func (p *pipeline) openRenderings(status *notify.Status) {
	var err error
	if p.renderings, err = status.NewRenderings(); err != nil {
		p.Log.Debug("Renderings are not remembered", zap.Error(err))
		p.renderings = nil
	}
}

// begin does the work before the first sync.
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

// sources lists the sources of hints, except the polls, and the other tasks that run
// while the lanes work.
func (p *pipeline) sources() (all []source) {
	if p.files != nil {
		all = p.files.sources()
	} else {
		all = p.secrets.sources()
	}
	if !p.config().Mode.OneShot() {
		all = append(all, p.expires)
	}
	return all
}

// stop stops the lanes. A second call does nothing.
func (p *pipeline) stop() { stopAll(p.lanes()) }

func stopAll(lanes []*lane) { each(lanes, (*lane).stop) }

// each calls f for all lanes concurrently, and waits.
func each(lanes []*lane, f func(*lane)) {
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(func() { f(l) })
	}
	wg.Wait()
}

// Enqueue sends each hint to the lane of its target.
func (p *pipeline) Enqueue(h queue.Hint, keys ...targets.Key) {
	for _, l := range p.lanes() {
		var own []targets.Key
		for _, key := range keys {
			if _, ok := l.targets.Get(key); ok {
				own = append(own, key)
			}
		}
		if len(own) > 0 {
			l.Enqueue(h, own...)
		}
	}
}

// take enqueues a sync for changed targets, and forgets deleted ones.
func (p *pipeline) take(h queue.Hint, changes []records.Change) {
	for _, l := range p.lanes() {
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
			l.Enqueue(h, own...)
		}
	}
}
