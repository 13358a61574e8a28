package pipeline

import (
	"cmp"
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

// inputsPollInterval is the time between checks of the annotations and the configuration file
// without an event.
const inputsPollInterval = 10 * time.Second

// lastSpans bounds the export of the last spans, so that a collector that does not answer
// cannot delay the end.
const lastSpans = 2 * time.Second

// Options are the settings of the command line.
type Options struct {
	Sources config.Sources
	// LogFormat is text or json. If empty, the configuration decides.
	LogFormat string
	// Parts are for the pipelines. Their Log and Traces are not used.
	Parts Parts
}

// validate returns the invalid options.
func (o *Options) validate() error {
	var errs []error
	if o.Parts.Workers < 1 {
		errs = append(errs, fmt.Errorf("--workers %d is too few; use at least 1", o.Parts.Workers))
	}
	if o.Parts.Grace < 0 {
		errs = append(errs, fmt.Errorf("--grace %v is too short; use at least 0s", o.Parts.Grace))
	}
	return errors.Join(errs...)
}

// Process runs a pipeline, and replaces it after some changes of the configuration. A new
// pipeline continues from the state of the old one, so unchanged targets are not touched.
// Make it with New.
type Process struct {
	options Options
	lines   *logs.Queue // the output of log
	log     *zap.Logger
	level   zap.AtomicLevel

	set    records.Set    // of files
	traces *traces.Tracer // nil if tracing is off

	mu         sync.Mutex
	settings   *settings          // of the supervisor, or of the next one
	supervisor *supervisor        // applies changes; nil if none does
	end        context.CancelFunc // ends the supervisor
}

// New returns a process that runs nothing yet. It writes the log to the standard error
// until stop is called.
func New(o Options) (s *Process, stop func(), err error) {
	s = &Process{options: o, lines: logs.NewQueue(os.Stderr)}
	s.log, s.level, err = logs.New(o.LogFormat, s.lines)
	if err := errors.Join(err, o.validate()); err != nil {
		return nil, nil, err
	}
	return s, s.lines.Start(), nil
}

// Log returns the log of the process.
func (s *Process) Log() *zap.Logger { return s.log }

// Run applies the configuration until ctx ends or the job is done. Run has logged the
// error.
func (s *Process) Run(ctx context.Context) error { return s.logged(s.run(ctx)) }

// Deliver delivers once, as in the mode init, and returns the configured mode. Deliver
// has logged the error.
func (s *Process) Deliver(ctx context.Context) (config.Mode, error) {
	cfg, err := s.load(nil)
	if cfg == nil {
		return "", s.logged(err)
	}
	defer s.trace()()
	once := *cfg
	once.Mode, once.Refresh = config.ModeInit, config.Refresh{}
	return cfg.Mode, s.logged(s.serve(ctx, newSettings(&once)))
}

func (s *Process) run(ctx context.Context) error {
	inputs := &sources.Inputs{Paths: s.inputs(), Interval: inputsPollInterval}
	inputs.Note()
	cfg, err := s.load(nil)
	if cfg == nil {
		return err
	}
	s.settings = newSettings(cfg)
	kube.RouteLogs(s.log)
	defer s.trace()()
	if cfg.Mode.OneShot() {
		return s.serve(ctx, s.settings)
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
		s.log.Info("The configuration has changed; starting again with the new one")
	}
}

// trace traces syncs, if the environment says so, until end is called.
func (s *Process) trace() (end func()) {
	troubles := health.NewTroubles(s.log)
	report := func(err error) { troubles.Report("traces", err) }
	var err error
	s.traces, err = traces.Start(s.options.Parts.Version, report)
	report(err)
	return func() { s.traces.Close(min(s.options.Parts.Grace, lastSpans)) }
}

// serve applies a configuration until ctx ends or the job is done.
func (s *Process) serve(ctx context.Context, settings *settings) error {
	supervisor, err := s.newSupervisor(settings)
	if err != nil {
		return err
	}
	return supervisor.run(ctx)
}

// newSupervisor returns the supervisor for a configuration. From now on it applies
// changes, unless it must end because of one.
func (s *Process) newSupervisor(settings *settings) (*supervisor, error) {
	parts := s.options.Parts
	parts.Log, parts.Traces = s.log, s.traces
	made, err := newSupervisor(settings, parts, &s.set)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings == settings {
		s.supervisor = made
	}
	return made, nil
}

// begin returns the settings to run with. It calls end when they are replaced.
func (s *Process) begin(end context.CancelFunc) *settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
	return s.settings
}

func (s *Process) replaced(settings *settings) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings != settings
}

// reload reads the configuration again. If the running parts cannot apply it, they end.
// An invalid configuration changes nothing.
func (s *Process) reload() error {
	supervisor, before := s.inEffect()
	cfg, invalid := s.load(before)
	switch {
	case cfg == nil:
		return errors.New("the changed configuration is not valid; the log lists each problem above, and the old configuration stays in effect")
	case invalid != nil:
		invalid = errors.New("the settings of some targets are not valid, see above (these targets keep their old ones)")
	}
	switch {
	case config.Compare(before, cfg).Scope == config.ScopeNone:
	case supervisor != nil && supervisor.canApply(cfg):
		s.log.Info("The configuration has changed; the running process applies it")
		return errors.Join(invalid, supervisor.apply(cfg))
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settings, s.supervisor = newSettings(cfg), nil
		if s.end != nil {
			s.end()
		}
	}
	return invalid
}

// inEffect returns the configuration in effect, and the supervisor that applies its
// changes, or nil.
func (s *Process) inEffect() (*supervisor, *config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.supervisor, s.settings.config()
}

// logged logs an error that ends the process, unless it was logged already or is a
// restart in place.
func (s *Process) logged(err error) error {
	_, invalid := errors.AsType[*config.InvalidError](err)
	_, restart := errors.AsType[*RestartError](err)
	if err != nil && !invalid && !restart {
		s.log.Error("Ending with an error", zap.Error(err))
	}
	return err
}

// inputs lists the files that the configuration comes from.
func (s *Process) inputs() []string {
	var paths []string
	if file := s.options.Sources.Annotations.Name; file != "" {
		paths = append(paths, file)
	}
	file := cmp.Or(s.options.Sources.ConfigFile.Name, s.options.Sources.Getenv(config.ConfigFileVariable))
	if file != "" {
		paths = append(paths, file)
	}
	return paths
}

// load reads the configuration, logs its problems and configures the log. It replaces
// before, unless before is nil. If the error concerns only single targets, load also
// returns a configuration.
func (s *Process) load(before *config.Config) (*config.Config, error) {
	s.log.Info("Parsing annotations", zap.String("file", s.options.Sources.Annotations.Name), zap.String("version", s.options.Parts.Version))
	read := config.Load
	if before != nil {
		read = func(src config.Sources) (*config.Config, []config.Problem, error) { return config.Reload(src, before) }
	}
	cfg, warnings, err := read(s.options.Sources.Read())
	for _, w := range warnings {
		s.log.Warn(w.Message, zap.String("key", w.Key))
	}
	s.logProblems(err)
	if cfg != nil && s.options.Parts.Command != nil {
		if amiss := s.options.Parts.Command.amend(cfg); amiss != nil {
			s.logProblems(amiss)
			cfg, err = nil, amiss
		}
	}
	switch {
	case cfg == nil:
		s.log.Error("The configuration is not valid; nothing was requested or written", zap.Int("problems", len(problemsOf(err))))
		return nil, err
	case err != nil:
		s.log.Error("The settings of some targets are not valid; all others are kept in sync", zap.Int("problems", len(problemsOf(err))))
	}
	cfg.ForgetTexts()
	if s.options.LogFormat == "" { // fixed for the life of the process
		s.options.LogFormat = cfg.Log.Format
		var err error
		if s.log, s.level, err = logs.New(cfg.Log.Format, s.lines); err != nil {
			return nil, err
		}
	}
	if err := s.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, err
	}
	s.log.Info("Annotations parsed", zap.String("mode", string(cfg.Mode)), zap.Int("targets", len(cfg.Targets)),
		zap.Duration("refresh", cfg.Refresh.Interval), zap.String("conjur", cfg.Conjur.ApplianceURL),
		zap.String("login", cfg.Conjur.Login), zap.Strings("namespaces", cfg.Kubernetes.Namespaces))
	for _, hint := range cfg.Hints() {
		s.log.Info(hint.Message, zap.String("key", hint.Key))
	}
	return cfg, err
}

// logProblems logs each problem of a configuration on a separate line.
func (s *Process) logProblems(err error) {
	for _, p := range problemsOf(err) {
		s.log.Error(p.Message, zap.String("key", p.Key))
	}
}

// problemsOf returns the problems of a configuration.
func problemsOf(err error) []config.Problem {
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return invalid.Problems
	}
	return nil
}
