package pipeline

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
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
	s, err := newSupervisor(newSettings(cfg), parts, newSet(cfg))
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// pipeline is the composition of Syncer's parts. No part knows it: each knows only the
// parts that it uses.
type pipeline struct {
	parts     Parts
	settings  *settings
	targetSet *records.Set // outlives pipelines
	metrics   *health.Metrics
	troubles  *health.Troubles
	clients   connect.Options

	listeners     *listeners
	lanes         *lanes
	texts         *sources.TemplateTexts
	app           *application
	announcer     notify.Announcer      // nil without a status folder
	renderCrashes *notify.RenderCrashes // nil: nothing is remembered

	// What the mode decides:
	ending ending
	tasks  []source // besides those of the destination
	// completeJob reads the targets of a one-shot process that could not be read at first.
	completeJob func(context.Context) error
	// filesAbsent reports whether the application deleted a file; nil without files.
	filesAbsent func() bool

	// What the destination decides:
	destination    destination
	inventory      inventory // says whether all targets are known yet
	sink           workers.Sink
	rotations      *rotations
	results        sources.Results       // nil: a watch reports changes by others
	expiryListener notify.ExpiryListener // may be nil
	closers        []func()              // close calls them

	running runner // runs the sources; it has no context before the start and after the end
}

// newPipeline wires the parts as the configuration in effect says. They do nothing yet.
// cluster is nil if no part needs it.
func newPipeline(parts Parts, settings *settings, targetSet *records.Set, metrics *health.Metrics, cluster *kube.Client, division *kube.Division) (*pipeline, error) {
	cfg, lanes, listeners, troubles := settings.config(), &lanes{}, &listeners{}, health.NewTroubles(parts.Log)
	p := &pipeline{
		parts: parts, settings: settings, targetSet: targetSet, metrics: metrics, troubles: troubles,
		clients:   connect.Options{Version: parts.Version, Inbox: inject.NewInbox(cfg.Conjur.InboxPath), Log: parts.Log, Remarker: troubles},
		listeners: listeners, lanes: lanes, texts: sources.NewTemplateTexts(cfg.Folders.Templates, cluster, lanes, lanes, troubles),
	}
	if err := p.openStatus(cfg); err != nil {
		return nil, err
	}
	listeners.add(troubleLog{troubles})
	listeners.add(counts{metrics})
	if cfg.Destination == config.DestinationFile {
		p.wireFiles(cfg, cluster)
	} else {
		p.wireSecrets(cfg, cluster, division)
	}
	if p.app != nil {
		p.app.known, p.announcer, p.sink = p.inventory.known, p.app, workers.Marked(p.sink, p.app.notified.Writing, p.troubles)
	}
	expiring := notify.NewExpiring(lanes.expiries, p.expiryListener, parts.Log)
	listeners.add(expiries{expiring})
	listeners.add(parts.Listener)
	if parts.Traces != nil {
		listeners.add(spans{})
	}
	revocation := &revocation{settings: settings, always: cfg.Mode.OneShot(), removed: make(chan struct{})}
	if cfg.Mode != config.ModeStandalone {
		listeners.add(revocation)
	}
	if cfg.Mode.OneShot() {
		p.ending = &job{settings: settings, set: targetSet, lanes: lanes, app: p.app, revocation: revocation, complete: p.completeJob}
	} else {
		p.ending, p.tasks = service{lanes, revocation, p.app.restart(), p.filesAbsent}, []source{expiring}
		if p.app != nil {
			p.tasks = append(p.tasks, p.app.restart())
		}
	}
	if err := p.fill(cfg); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// wireFiles wires the secrets folder.
func (p *pipeline) wireFiles(cfg *config.Config, cluster *kube.Client) {
	f := &files{
		settings: p.settings, lanes: p.lanes, targets: p.targetSet.Lane(cfg.Identities[0].Name), texts: p.texts,
		folder:  sinks.NewFiles(cfg.Folders.Secrets, nil),
		command: p.parts.Command, app: p.app, troubles: p.troubles, log: p.parts.Log,
		onDisk: &onDisk{settings: p.settings, cluster: cluster, clients: p.clients, log: p.parts.Log},
	}
	f.folder.Limit(int64(cfg.SecretsSizeLimit) << 20)
	if !cfg.Mode.OneShot() {
		f.requests = []source{&sources.Requests{Folder: cfg.Folders.Status, Interval: requestsPollInterval, Application: f, Changed: &p.app.changed, Reporter: p.troubles}}
	}
	p.listeners.add(f)
	p.destination, p.inventory, p.rotations, p.results, p.sink = f, configured{}, &rotations{}, f, p.parts.Command.sink(f.folder)
	p.completeJob = func(context.Context) error { return nil }
	p.filesAbsent = func() bool { return absent(cfg.Folders.Secrets, p.targetSet.Records()) }
	p.closers = append(p.closers, p.metrics.WatchFolder(f.folder))
}

// wireSecrets wires the Kubernetes Secrets: what defines them, what reports on them, and
// what rotates the sets in them.
func (p *pipeline) wireSecrets(cfg *config.Config, cluster *kube.Client, division *kube.Division) {
	p.clients.MayWrite = cluster.MayWrite
	sink := kubesecrets.New(cluster.Core)
	sink.Remarker = p.troubles
	s := &secrets{settings: p.settings, set: p.targetSet, cluster: cluster, division: division, texts: p.texts, troubles: p.troubles}
	events := newEvents(p.targetSet, cluster, p.metrics, p.troubles)
	events.restarts = newRestarts(cfg, cluster, events, p.troubles, p.parts.Log)
	events.restarts.Wants = func(w targets.Workload, secret string) bool {
		t, ok := p.targetSet.Get(targets.KubeSecretKey(w.Namespace, secret))
		return ok && division.Serves(w.Namespace) && slices.Contains(t.Secret.Restart, w.String())
	}
	accounts := cluster.NewPullSecrets(p.targetSet, s.knows, events.recorder, p.troubles, p.parts.Log)
	drift := workers.NewDrift(p.lanes, events, p.metrics)
	s.definitions = &definer{
		settings: p.settings, set: p.targetSet, lanes: p.lanes, texts: p.texts, events: events, accounts: accounts, drift: drift,
		troubles: p.troubles, log: p.parts.Log,
	}
	s.rotations = &rotations{settings: p.settings, set: p.targetSet, lanes: p.lanes, secrets: s, events: events, metrics: p.metrics, clients: p.clients}
	s.restarts, s.tasks = events.restarts, []source{events.recorder}
	p.destination, p.inventory, p.rotations, p.sink = s, s, s.rotations, sink
	switch {
	case cfg.Mode.OneShot():
		l := &loading{secrets: s}
		p.destination, p.completeJob = l, l.complete
	case cfg.Mode == config.ModeStandalone:
		s.tasks = append(s.tasks, events.restarts, drift, accounts, waiting{s})
	default:
		s.tasks = append(s.tasks, events.restarts, drift)
	}
	p.listeners.add(events)
	p.expiryListener = events
	p.listeners.add(drift)
	p.listeners.add(s.rotations)
	p.closers = append(p.closers, p.metrics.WatchSets(s.rotations.measured), s.rotations.close)
}

// newLane wires the parts of one identity. The caller must stop the lane in every case.
func (p *pipeline) newLane(cfg *config.Config, identity config.Identity) (l *lane, err error) {
	l = &lane{
		identity: identity, name: cmp.Or(identity.Name, "default"), settings: p.settings, targets: p.targetSet.Lane(identity.Name),
		listeners: p.listeners, renderCrashes: p.renderCrashes, app: p.app, troubles: p.troubles, metrics: p.metrics, log: p.parts.Log,
		intervals: make(chan time.Duration, 1),
	}
	clients := p.clients
	clients.Observer = l
	if l.client, err = connect.Conjur(identity.Conjur, clients); err != nil {
		return nil, err
	}
	if l.values, err = variables.New(l.client, variables.Config{Rules: rules(cfg), Listener: l, Delivered: l.delivered, Users: l.users, Logger: l.log}); err != nil {
		return nil, err
	}
	l.lister = &workers.WildcardLister{Catalog: l.values.NewCatalog(), Targets: l.targets}
	l.rounds = &notify.Rounds{Announcer: p.announcer}
	l.queue = queue.New(l.queueConfig(cfg))
	l.pool = workers.NewPool(workers.PoolConfig{
		Work: l.queue,
		Syncer: &workers.Syncer{
			Targets:       l.targets,
			Values:        l.values,
			Templates:     p.texts,
			Sink:          p.sink,
			Policy:        policy(cfg),
			Lister:        l.lister,
			RenderCrashes: p.renderCrashes,
			Traces:        p.parts.Traces,
			Log:           l.log,
		},
		Workers:  p.parts.Workers,
		Timeout:  3 * cfg.Conjur.HTTPTimeout,
		Grace:    p.parts.Grace,
		Identity: l.name,
		Listener: l,
	})
	if cfg.Mode.OneShot() {
		return l, nil
	}
	poll := &sources.Poll{
		Interval: cfg.Refresh.Interval, Intervals: l.intervals, Deadline: 2 * cfg.Conjur.HTTPTimeout,
		Users: l.targets, Values: l.values, Results: p.results, Lister: l.lister, Queue: l, Reporter: l, Heart: l,
	}
	if p.app != nil {
		poll.Taken = p.app.changed.C()
	}
	l.sources = []source{poll}
	return l, nil
}
