package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	signals "github.com/secretsync/syncer/pkg/notify/process"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/sinks"
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
	metrics  *health.Metrics
	troubles *health.Troubles
	log      *zap.Logger
}

// openStatus opens the status folder. A sidecar that delivers files needs it, for its own
// probes and the application's. In other modes a writable folder may be absent, because
// nobody reads it.
func (p *pipeline) openStatus(cfg *config.Config) error {
	if cfg.Mode == config.ModeStandalone {
		p.openRenderings(notify.OpenStatus(cfg.Folders.Status))
		return nil
	}
	status, err := notify.NewStatus(cfg.Folders.Status)
	if err == nil && cfg.Mode.OneShot() && status.ReadOnly() {
		err = fmt.Errorf("status folder: %s: %w; mount a volume there if anybody looks at it", cfg.Folders.Status, syscall.EROFS)
	}
	if err != nil {
		if cfg.Destination == config.DestinationFile && !cfg.Mode.OneShot() {
			return err
		}
		p.parts.Log.Warn("Continuing without a status folder", zap.Error(err))
		return nil
	}
	p.openRenderings(status)
	p.app = &application{
		status: status, notified: notify.NewApplication(status, p.set, p.parts.Log), command: p.parts.Command,
		metrics: p.metrics, troubles: p.troubles, log: p.parts.Log,
	}
	commit, err := p.app.prepare(cfg)
	if err == nil {
		commit()
	}
	return err
}

// openRenderings finds out why earlier processes died, if there is a status folder to
// remember it in.
func (p *pipeline) openRenderings(status *notify.Status) {
	var err error
	if p.renderings, err = status.NewRenderings(); err != nil {
		p.parts.Log.Debug("Cannot record which target is rendered", zap.Error(err))
		p.renderings = nil
	}
}

// prepare returns a function that puts the notifiers of a configuration in effect: the
// ways, in addition to files, to notify the application of updates.
func (a *application) prepare(cfg *config.Config) (commit func(), err error) {
	switch {
	case a == nil:
		return func() {}, nil
	case a.command != nil:
		return func() { a.notified.SetNotifiers(a.command.Notify) }, nil
	case cfg.Signal.Number == 0:
		return func() { a.notified.SetNotifiers() }, nil
	}
	signaller, err := signals.NewSignaller(signals.SignalConfig{
		Signal:  cfg.Signal.Number,
		User:    cfg.Signal.User,
		Command: cfg.Signal.Command,
		Sent:    a.metrics.Signalled,
		Log:     a.log,
	})
	return func() { a.notified.SetNotifiers(signaller.Notify) }, err
}

// start prepares the status folder, announces what an earlier process did not, and calls
// prime. Then it reports the missing targets.
func (a *application) start(ctx context.Context, prime func(context.Context)) {
	if a == nil {
		prime(ctx)
		return
	}
	a.troubles.Report("scripts", a.status.InstallScripts())
	a.troubles.Report(notify.UpdatedFile, a.notified.Recover(ctx))
	prime(ctx)
	a.troubles.Report(notify.ProvidedFile, a.notified.SayMissing())
}

// beat shows readers of the status folder that the process makes progress.
func (a *application) beat() error {
	if a == nil {
		return nil
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

// journaled is a sink that leaves a mark before each write about which Syncer must notify
// the application. See notify.Application.Writing.
type journaled struct {
	workers.Sink
	app *application
}

func (j journaled) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if !c.Empty() && !c.Restores {
		wrote, err := j.app.notified.Writing()
		j.app.troubles.Report("journal", err)
		defer wrote()
	}
	return j.Sink.Apply(ctx, r, c)
}

// RemoveFormer implements workers.Mover.
func (j journaled) RemoveFormer(former []string, taken func(path string) bool) (sinks.Cleared, error) {
	if mover, ok := j.Sink.(workers.Mover); ok {
		return mover.RemoveFormer(former, taken)
	}
	return sinks.Cleared{}, nil
}
