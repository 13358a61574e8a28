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

// Command is a command that runs beside the pipeline, as the application does
// elsewhere: some secret groups become environment variables, and the command
// is notified of updates instead of processes that the configuration names.
type Command struct {
	Groups      []string
	Environment *sinks.Environment
	Notify      notify.Notifier
}

// amend changes a configuration, or says why it does not fit.
func (a *Command) amend(cfg *config.Config) error {
	var problems []config.Problem
	fail := func(key, format string, args ...any) {
		problems = append(problems, config.Problem{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	if cfg.Mode == config.ModeStandalone || cfg.Destination != config.DestinationFile {
		fail("exec", "the secrets of a command are files or environment variables; set the destination file, and the mode sidecar or init")
	}
	owner := map[string]string{} // :: variable → the group that it comes from
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
				fail("--env", "the group %q has an entry for all variables; name each variable that is to be in the environment", group)
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
	cfg.Signal = config.Signal{} // it is notified as the command line says
	return nil
}

// inEnvironment makes a target of which each entry is a part of its own, and
// that is in no file.
func inEnvironment(t *targets.Target) *targets.Target {
	e := *t
	e.Format, e.Template = targets.FormatDirectory, targets.Template{}
	e.File.Path = ""
	return &e
}

// files are the targets that remain files; all of them without a command.
func (a *Command) files(ts []*targets.Target) []*targets.Target {
	if a == nil {
		return ts
	}
	return slices.DeleteFunc(slices.Clone(ts), func(t *targets.Target) bool { return a.keys()[t.Key] })
}

// keys are those of the targets of the environment.
func (a *Command) keys() map[targets.Key]bool {
	keys := map[targets.Key]bool{}
	for _, group := range a.Groups {
		keys[targets.FileKey(group)] = true
	}
	return keys
}

// sink sends the targets of the environment there, and all others on; without
// a command all.
func (a *Command) sink(files *sinks.Files) workers.Sink {
	if a == nil {
		return files
	}
	return fork{keys: a.keys(), environment: a.Environment, Files: files}
}

// fork is two sinks in one.
type fork struct {
	keys        map[targets.Key]bool // of what goes to the environment
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
