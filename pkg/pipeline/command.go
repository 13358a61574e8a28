package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Command is a command that runs next to the pipeline, as the application does otherwise.
// Some secret groups become its environment variables. Syncer notifies it of updates,
// instead of the processes that the configuration names.
type Command struct {
	Groups      []string
	Environment *sinks.Environment
	Notify      notify.Notifier
}

// amend changes a configuration for the command, or returns why the configuration does
// not fit.
func (a *Command) amend(cfg *config.Config) error {
	var problems []config.Problem
	fail := func(key, format string, args ...any) {
		problems = append(problems, config.Problem{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	if cfg.Mode == config.ModeStandalone || cfg.Destination != config.DestinationFile {
		fail("exec", "the secrets of a command are files or environment variables; set the destination file, and the mode sidecar or init")
	}
	owner := map[string]string{} // :: variable → the group that sets it
	for _, group := range slices.Compact(slices.Sorted(slices.Values(a.Groups))) {
		i := slices.IndexFunc(cfg.Targets, func(t *targets.Target) bool { return t.Key == targets.FileKey(group) })
		if i < 0 {
			fail("--env", "there is no secret group %q", group)
			continue
		}
		for _, e := range cfg.Targets[i].Entries {
			err := sinks.CheckEnvironmentName(e.Alias)
			switch other, taken := owner[e.Alias]; {
			case e.All():
				fail("--env", "the group %q has an entry for all variables; name each variable for the environment", group)
			case err != nil:
				fail("--env", "the group %q: the alias %v", group, err)
			case taken:
				fail("--env", "the groups %q and %q both have the alias %q", other, group, e.Alias)
			}
			owner[e.Alias] = group
		}
		cfg.Targets[i] = inEnvironment(cfg.Targets[i])
	}
	if len(problems) > 0 {
		return &config.InvalidError{Problems: problems}
	}
	cfg.Signal = config.Signal{} // the command line decides how to notify the command
	return nil
}

// inEnvironment makes a target in which each entry is a separate part, and which has no
// file.
func inEnvironment(t *targets.Target) *targets.Target {
	e := *t
	e.Format, e.Template = targets.FormatDirectory, targets.Template{}
	e.File.Path = ""
	return &e
}

// files returns the targets that remain files. Without a command these are all targets.
func (a *Command) files(ts []*targets.Target) []*targets.Target {
	if a == nil {
		return ts
	}
	return slices.DeleteFunc(slices.Clone(ts), func(t *targets.Target) bool { return a.keys()[t.Key] })
}

// keys returns the keys of the targets in the environment.
func (a *Command) keys() map[targets.Key]bool {
	keys := map[targets.Key]bool{}
	for _, group := range a.Groups {
		keys[targets.FileKey(group)] = true
	}
	return keys
}

// sink sends the targets of the environment to the command, and all others to files.
// Without a command it sends all to files.
func (a *Command) sink(files *sinks.Files) workers.Sink {
	if a == nil {
		return files
	}
	return fork{keys: a.keys(), environment: a.Environment, Files: files}
}

// fork combines two sinks.
type fork struct {
	keys        map[targets.Key]bool // targets of the environment
	environment *sinks.Environment
	*sinks.Files
}

func (f fork) of(r records.Record) workers.Sink {
	if f.keys[r.Spec.Key] {
		return f.environment
	}
	return f.Files
}

func (f fork) Read(ctx context.Context, r records.Record) (sinks.State, error) {
	return f.of(r).Read(ctx, r)
}

func (f fork) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	return f.of(r).Apply(ctx, r, c)
}
