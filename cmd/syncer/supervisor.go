package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	signals "github.com/secretsync/syncer/pkg/process"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/workers"
)

// inputsLook is the time between looks at the annotations and the
// configuration file without an event.
const inputsLook = 10 * time.Second

// supervisor runs a pipeline, and another one in its place when the
// configuration has changed. A new pipeline finds everything as the old one
// left it, so what did not change is not touched.
type supervisor struct {
	flags runFlags
	lines *logQueue // that log writes to
	log   *zap.Logger
	level zap.AtomicLevel

	deliveries workers.Deliveries
	files      *sinks.Files
	amend      *amendment // nil: the configuration is taken as it is

	mu  sync.Mutex
	cfg *config.Config     // the valid configuration that was read last
	end context.CancelFunc // of the pipeline that runs
}

// newSupervisor returns a supervisor that runs nothing yet. The log is written
// until stop is called.
func newSupervisor(flags runFlags) (s *supervisor, stop func(), err error) {
	s = &supervisor{flags: flags, lines: newLogQueue(os.Stderr)}
	s.log, s.level, err = newLogger(flags.logFormat, s.lines)
	if err := errors.Join(err, flags.check()); err != nil {
		return nil, nil, err
	}
	return s, s.lines.start(), nil
}

func (s *supervisor) run(ctx context.Context) error {
	s.files = sinks.NewFiles(s.flags.sources.SecretsDir, nil)
	inputs := &sources.Inputs{Paths: s.inputs(), Interval: inputsLook}
	inputs.Note()
	cfg, err := s.load()
	if err != nil {
		return err
	}
	s.cfg = cfg
	kube.RouteLogs(s.log)
	if cfg.Mode.OneShot() {
		return s.serve(ctx, cfg)
	}

	troubles := health.NewTroubles(s.log)
	inputs.Report = troubles.Report
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

// inputs are the files that the configuration is read from.
func (s *supervisor) inputs() []string {
	paths := []string{s.flags.sources.Annotations}
	file := cmp.Or(s.flags.sources.ConfigFile, s.flags.sources.Getenv(config.ConfigFileVariable))
	if file != "" {
		paths = append(paths, file)
	}
	return paths
}

// serve does what a configuration says until ctx ends or it is done.
func (s *supervisor) serve(ctx context.Context, cfg *config.Config) error {
	h, err := newHost(cfg, s.log)
	if err != nil {
		return err
	}
	tellers, err := s.tellers(cfg, h)
	if err != nil {
		return err
	}
	return h.run(ctx, func(ctx context.Context) error {
		p := &pipeline{cfg: cfg, workers: s.flags.workers, grace: s.flags.grace, log: s.log, host: h,
			deliveries: &s.deliveries, files: s.files, tellers: tellers, amend: s.amend}
		return p.run(ctx)
	})
}

// tellers are the ways to tell the application of updates besides files.
func (s *supervisor) tellers(cfg *config.Config, h *host) ([]notify.Teller, error) {
	if s.amend != nil {
		return []notify.Teller{s.amend.tell}, nil
	}
	if cfg.Signal.Number == 0 {
		return nil, nil
	}
	signaller, err := signals.NewSignaller(signals.SignalConfig{
		Signal:  cfg.Signal.Number,
		User:    cfg.Signal.User,
		Command: cfg.Signal.Command,
		Sent:    h.metrics.Signalled,
		Log:     s.log,
	})
	if err != nil {
		return nil, err
	}
	return []notify.Teller{signaller.Tell}, nil
}

// begin gives the configuration to run with; end is called when it is
// replaced.
func (s *supervisor) begin(end context.CancelFunc) *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
	return s.cfg
}

func (s *supervisor) replaced(cfg *config.Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg != cfg
}

// reload reads the configuration again and lets the pipeline that runs come to
// its end. An invalid one changes nothing.
func (s *supervisor) reload() error {
	cfg, err := s.load()
	if err != nil {
		return errors.New("what was written is not valid, see above (keeping the old configuration)")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	if s.end != nil {
		s.end()
	}
	return nil
}

// load reads the configuration, logs what is wrong with it, and sets the log
// as it says.
func (s *supervisor) load() (*config.Config, error) {
	s.log.Info("Parsing annotations", zap.String("file", s.flags.sources.Annotations), zap.String("version", version()))
	cfg, warnings, err := config.Load(s.flags.sources)
	for _, w := range warnings {
		s.log.Warn(w.Message, zap.String("key", w.Key))
	}
	if err == nil && s.amend != nil {
		err = s.amend.amend(cfg)
	}
	if err != nil {
		s.logProblems(err)
		return nil, err
	}
	if s.flags.logFormat == "" { // decided once, for the life of the process
		s.flags.logFormat = cfg.Log.Format
		if s.log, s.level, err = newLogger(cfg.Log.Format, s.lines); err != nil {
			return nil, err
		}
	}
	if err := s.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, err
	}
	s.log.Info("Annotations parsed", zap.String("mode", string(cfg.Mode)), zap.Int("targets", len(cfg.Targets)),
		zap.Duration("refresh", cfg.Refresh.Interval))
	return cfg, nil
}

// logEnd logs an error that ends the process, unless that was done.
func (s *supervisor) logEnd(err error) {
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) { // its problems have been logged
		s.log.Error("Ending with an error", zap.Error(err))
	}
}

// logProblems logs each problem of a configuration on a line of its own.
func (s *supervisor) logProblems(err error) {
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		s.log.Error("Configuration", zap.Error(err))
		return
	}
	for _, p := range invalid.Problems {
		s.log.Error(p.Message, zap.String("key", p.Key))
	}
	s.log.Error("The configuration is not valid; nothing was requested or written", zap.Int("problems", len(invalid.Problems)))
}
