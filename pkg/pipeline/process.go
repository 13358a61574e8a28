package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/logs"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// inputsLook is the time between looks at the annotations and the
// configuration file without an event.
const inputsLook = 10 * time.Second

// lastSpans is how long the last spans may take on their way, so that a
// collector that does not answer holds up no end.
const lastSpans = 2 * time.Second

// Options is what the command line says.
type Options struct {
	Sources config.Sources
	// LogFormat is text or json; "": as the configuration says.
	LogFormat string
	// Workers is how many targets of an identity are worked on at once.
	Workers int
	// Grace is how long writes under way may go on after ctx has ended.
	Grace time.Duration
	// Version is that of the build.
	Version string
	// Command, when not nil, is what runs beside the pipeline; see Command.
	Command *Command
}

// check returns the options that make no sense.
func (o *Options) check() error {
	var errs []error
	if o.Workers < 1 {
		errs = append(errs, fmt.Errorf("--workers %d is too few; use at least 1", o.Workers))
	}
	if o.Grace < 0 {
		errs = append(errs, fmt.Errorf("--grace %v is too short; use at least 0s", o.Grace))
	}
	return errors.Join(errs...)
}

// Process runs a pipeline, and another one in its place when the
// configuration has changed. A new pipeline finds everything as the old one
// left it, so what did not change is not touched. Make it with New.
type Process struct {
	options Options
	lines   *logs.Queue // that log writes to
	log     *zap.Logger
	level   zap.AtomicLevel

	set    records.Set    // of files
	traces *traces.Tracer // nil: nothing is traced

	mu   sync.Mutex
	cfg  *config.Config     // that the host was made for, or that the next one is
	host *host              // that takes up changes; nil: none does
	end  context.CancelFunc // ends it
}

// New returns a process that runs nothing yet. The log is written, to the
// standard error, until stop is called.
func New(o Options) (s *Process, stop func(), err error) {
	s = &Process{options: o, lines: logs.NewQueue(os.Stderr)}
	s.log, s.level, err = logs.New(o.LogFormat, s.lines)
	if err := errors.Join(err, o.check()); err != nil {
		return nil, nil, err
	}
	return s, s.lines.Start(), nil
}

// Log returns where the process logs.
func (s *Process) Log() *zap.Logger { return s.log }

// Run does what the configuration says until ctx ends or all is done. The
// error has been logged.
func (s *Process) Run(ctx context.Context) error { return s.logged(s.run(ctx)) }

// Deliver delivers what the configuration says once, as in the mode init, and
// returns the mode that it says. The error has been logged.
func (s *Process) Deliver(ctx context.Context) (config.Mode, error) {
	cfg, err := s.load(nil)
	if cfg == nil {
		return "", s.logged(err)
	}
	defer s.trace()()
	once := *cfg
	once.Mode, once.Refresh = config.ModeInit, config.Refresh{}
	return cfg.Mode, s.logged(s.serve(ctx, &once))
}

func (s *Process) run(ctx context.Context) error {
	inputs := &sources.Inputs{Paths: s.inputs(), Interval: inputsLook}
	inputs.Note()
	cfg, err := s.load(nil)
	if cfg == nil {
		return err
	}
	s.cfg = cfg
	kube.RouteLogs(s.log)
	defer s.trace()()
	if cfg.Mode.OneShot() {
		return s.serve(ctx, cfg)
	}

	troubles := health.NewTroubles(s.log)
	inputs.Reporter = troubles
	inputs.Changed = func() { troubles.Report("configuration", s.reload()) }
	following, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { inputs.Run(following) })

	for {
		life, end := context.WithCancel(ctx)
		current := s.begin(end)
		err := s.serve(life, current)
		end()
		if err != nil || ctx.Err() != nil || !s.replaced(current) {
			return err
		}
		s.log.Info("The configuration has changed; carrying on with the new one")
	}
}

// trace has syncs traced, where the environment says so, until end is called.
func (s *Process) trace() (end func()) {
	troubles := health.NewTroubles(s.log)
	report := func(err error) { troubles.Report("traces", err) }
	var err error
	s.traces, err = traces.Start(s.options.Version, report)
	report(err)
	return func() { s.traces.Close(min(s.options.Grace, lastSpans)) }
}

// serve does what a configuration says until ctx ends or it is done.
func (s *Process) serve(ctx context.Context, cfg *config.Config) error {
	h, err := s.newHost(cfg)
	if err != nil {
		return err
	}
	return h.run(ctx, func(ctx context.Context) error {
		p := &pipeline{set: &s.set, host: h, Parts: Parts{
			Workers: s.options.Workers, Grace: s.options.Grace, Version: s.options.Version, Log: s.log, Command: s.options.Command, Traces: s.traces,
		}}
		p.wire(wiring{cfg: h.config()})
		if cfg.Destination == config.DestinationKubernetes { // others may have written meanwhile
			p.set = newSet(h.config())
		}
		return p.run(ctx)
	})
}

// newHost returns the host for a configuration. It takes up changes from now on,
// unless it is about to end for one.
func (s *Process) newHost(cfg *config.Config) (*host, error) {
	h, err := newHost(cfg, s.options.Version, s.log)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg == cfg {
		s.host = h
	}
	return h, nil
}

// begin returns the configuration to run with; end is called when it is
// replaced.
func (s *Process) begin(end context.CancelFunc) *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
	return s.cfg
}

func (s *Process) replaced(cfg *config.Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg != cfg
}

// reload reads the configuration again. What runs takes it up, if it can, or
// comes to its end. What is invalid changes nothing.
func (s *Process) reload() error {
	h, before := s.inEffect()
	cfg, invalid := s.load(before)
	switch {
	case cfg == nil:
		return errors.New("what was written is not valid, see above (keeping the old configuration)")
	case invalid != nil:
		invalid = errors.New("the settings of some targets are not valid, see above (these targets keep their old ones)")
	}
	switch {
	case config.Compare(before, cfg).Scope == config.ScopeNone:
	case h != nil && h.takesUp(cfg):
		s.log.Info("The configuration has changed; what runs takes it up")
		return errors.Join(invalid, h.takeUp(cfg))
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cfg, s.host = cfg, nil
		if s.end != nil {
			s.end()
		}
	}
	return invalid
}

// inEffect returns the configuration in effect, and the host that takes up
// changes of it; nil if none does.
func (s *Process) inEffect() (*host, *config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil {
		return nil, s.cfg
	}
	return s.host, s.host.config()
}

// logged logs an error that ends the process, unless that was done.
func (s *Process) logged(err error) error {
	if _, invalid := errors.AsType[*config.InvalidError](err); err != nil && !invalid { // its problems have been logged
		s.log.Error("Ending with an error", zap.Error(err))
	}
	return err
}
