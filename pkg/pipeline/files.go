package pipeline

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// requestsLook is the time between looks for an application's request without
// an event; a look is a stat.
const requestsLook = 10 * time.Second

// filesPlace is the secrets folder. What belongs there is configured.
type filesPlace struct {
	*pipeline
	texts *texts
}

func newFilesPlace(p *pipeline) *filesPlace {
	if p.files == nil {
		p.files = sinks.NewFiles(p.cfg.Folders.Secrets, nil)
	}
	return &filesPlace{pipeline: p, texts: newTexts(p)}
}

func (p *filesPlace) sink() workers.Sink           { return p.files }
func (p *filesPlace) templates() workers.Templates { return p.texts }

func (p *filesPlace) altered(l *lane) []targets.Key { return p.files.Altered(l.targets.All()) }

func (p *filesPlace) prepare(ctx context.Context) {
	p.lanes[0].targets.Replace(p.cfg.Targets)
	files := p.command.files(p.cfg.Targets)
	p.files.Assign(files)
	if len(files) > 0 {
		if err := p.files.Clean(ctx, files); ctx.Err() == nil { // else the next start looks
			p.troubles.Report("leftovers", err)
		}
	}
}

func (p *filesPlace) complete(context.Context) error { return nil }

// sources are none in a one-shot process, and no watch where refresh is off.
func (p *filesPlace) sources() []func(context.Context) {
	if p.cfg.Mode.OneShot() {
		return nil
	}
	run := []func(context.Context){p.requests().Run}
	if p.cfg.Refresh.Enabled {
		run = append(run, p.texts.sources()...)
	}
	return run
}

// requests is the watch for an application that wants its files now.
func (p *filesPlace) requests() *sources.Requests {
	return &sources.Requests{
		Folder:   p.cfg.Folders.Status,
		Interval: requestsLook,
		Take:     p.status.TakeRequested,
		Taken:    p.requested,
		Report:   p.troubles.Report,
	}
}

func (p *filesPlace) synced() error            { return nil }
func (p *filesPlace) ready() ([]string, error) { return nil, nil }

// requested brings back what is missing.
func (p *filesPlace) requested() {
	keys := p.keys()
	p.log.Info("Bringing back what the application asked for", zap.Int("targets", len(keys)))
	p.deliveries.Request(keys...)
	p.enqueue(queue.Hint{Trigger: "request", Wakes: true}, keys...)
}

// settled removes what a target left under another name, before its format or
// path changed, once it is right under the new one or revoked.
func (p *filesPlace) settled(_ *lane, r workers.Result) {
	if revoked, ok := errors.AsType[*workers.RevokedError](r.Err); r.Err != nil && (!ok || revoked.Kept) {
		return
	}
	if r.Err == nil {
		p.files.Confirm(r.Key)
	}
	removed, altered, err := p.files.RemoveFormer(r.Key)
	for _, path := range removed {
		p.log.Info("Removed what a target had under another name", zap.String("target", string(r.Key)), zap.String("file", path))
	}
	for _, path := range altered {
		p.log.Warn("Leaving what a target had under another name, as somebody has altered it", zap.String("target", string(r.Key)), zap.String("file", path))
	}
	p.troubles.Report(string(r.Key)+" under another name", err)
}

func (p *filesPlace) held(*lane, variables.HoldEvent) {}
