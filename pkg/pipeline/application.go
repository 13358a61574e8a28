package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	signals "github.com/secretsync/syncer/pkg/notify/process"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// application is the application in the Pod, which reads the status folder. Without a
// status folder it is nil, and its methods do nothing.
type application struct {
	status   *notify.Status
	notified *notify.Application
	command  *Command     // runs as the application, or nil
	known    func() error // why some targets may be missing
	changed  wake.Wake    // the status folder
	metrics  *health.Metrics
	troubles *health.Troubles
	log      *zap.Logger
}

// openStatus opens the status folder. A sidecar that delivers files needs it, for its own
// probes and the application's. In other modes a writable folder may be absent, because
// nobody reads it.
func (p *pipeline) openStatus(cfg *config.Config) error {
	if cfg.Mode == config.ModeStandalone {
		p.openRenderCrashes(notify.OpenStatus(cfg.Folders.Status))
		return nil
	}
	status, err := notify.NewStatus(cfg.Folders.Status)
	if err == nil && cfg.Mode.OneShot() && status.ReadOnly() {
		err = fmt.Errorf("status folder: %s: %w; mount a volume there if anybody looks at it", cfg.Folders.Status, syscall.EROFS)
	}
	if err != nil {
		if cfg.Destination == config.DestinationFile && !cfg.Mode.OneShot() || cfg.InPlace.Enabled {
			return err
		}
		p.parts.Log.Warn("Continuing without a status folder", zap.Error(err))
		return nil
	}
	p.openRenderCrashes(status)
	p.app = &application{
		status: status, notified: notify.NewApplication(status, p.targetSet, p.parts.Log), command: p.parts.Command,
		metrics: p.metrics, troubles: p.troubles, log: p.parts.Log,
	}
	commit, err := p.app.prepare(cfg)
	if err == nil {
		commit()
	}
	return err
}

// openRenderCrashes finds out why earlier processes died, if there is a status folder to
// remember it in.
func (p *pipeline) openRenderCrashes(status *notify.Status) {
	var err error
	if p.renderCrashes, err = status.NewRenderCrashes(); err != nil {
		p.parts.Log.Debug("Cannot record which target is rendered", zap.Error(err))
		p.renderCrashes = nil
	}
}

// prepare returns a function that puts the notifiers of a configuration in effect: the
// ways, in addition to files, to notify the application of updates.
func (a *application) prepare(cfg *config.Config) (commit func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	commitTo := func(notifiers ...notify.Notifier) func() {
		return func() {
			a.notified.InPlace().SetRules(notify.InPlaceRules(cfg.InPlace))
			a.notified.SetNotifiers(notifiers...)
		}
	}
	switch {
	case a.command != nil:
		return commitTo(a.command.Notify), nil
	case cfg.Signal.Number == 0:
		return commitTo(), nil
	}
	signaller, err := signals.NewSignaller(signals.SignalConfig{
		Signal:  cfg.Signal.Number,
		User:    cfg.Signal.User,
		Command: cfg.Signal.Command,
		Sent:    a.metrics.Signalled,
		Log:     a.log,
	})
	return commitTo(signaller.Notify), err
}

// restart returns the restarts in place; nil if there is no application.
func (a *application) restart() *notify.InPlace {
	if a == nil {
		return nil
	}
	return a.notified.InPlace()
}

// start prepares the status folder, announces what an earlier process did not, and calls
// prime. Then it reports the missing targets.
func (a *application) start(ctx context.Context, prime func(context.Context)) {
	if a == nil {
		prime(ctx)
		return
	}
	a.troubles.Report("scripts", a.status.InstallScripts())
	restarts, err := a.restart().State()
	a.troubles.Report("restart in place", err)
	a.metrics.RestartedInPlace(restarts.Count)
	a.troubles.Report(notify.UpdatedFile, a.notified.Recover(ctx))
	prime(ctx)
	a.troubles.Report(notify.ProvidedFile, a.notified.SayMissing())
}

// beat shows readers of the status folder that the process makes progress.
func (a *application) beat() (given bool, err error) {
	if a == nil {
		return false, nil
	}
	return a.status.Beat()
}

// unprovided reports a failure to tell the application that all secrets are there.
func (a *application) unprovided() error {
	if a == nil {
		return nil
	}
	if provided, err := a.status.Provided(); err != nil || !provided {
		return fmt.Errorf("all is delivered, but the file %s could not be written", notify.ProvidedFile)
	}
	return nil
}

// keysSeen returns the application's note of a set.
func (a *application) keysSeen(set string) (holding consumers.Holding, noted bool, err error) {
	if a == nil {
		return holding, false, nil
	}
	text, err := a.status.KeysSeen()
	if text == nil || err != nil {
		return holding, false, err
	}
	var all map[string]consumers.Holding
	if json.Unmarshal(text, &all) != nil {
		return holding, false, fmt.Errorf(`%s is not of the form {"SET":{"ids":["r1","r2"],"primary":"r2"}}`, notify.KeysSeenFile)
	}
	holding, noted = all[set]
	return holding, noted, nil
}

// Announce implements notify.Announcer, like Ended and Retry.
func (a *application) Announce(ctx context.Context) {
	a.troubles.Report(notify.UpdatedFile, a.notified.Updated(ctx))
}

func (a *application) Ended(context.Context) {
	if a.known() == nil {
		a.troubles.Report(notify.ProvidedFile, a.notified.Provided())
	}
}

func (a *application) Retry(ctx context.Context) (done bool) {
	return a.notified.Retry(ctx, a.troubles.Report)
}

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
	if cfg.InPlace.Enabled {
		fail("exec", "a restart in place restarts the container of the command too; switch restart-app-in-place off")
	}
	owner := map[string]string{} // variable → the group that sets it
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
