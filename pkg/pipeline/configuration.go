package pipeline

import (
	"cmp"
	"errors"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/logs"
)

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
