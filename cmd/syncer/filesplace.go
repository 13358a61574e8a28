package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// requestsLook is the time between looks for an application's request without
// an event; a look is a stat.
const requestsLook = 10 * time.Second

// filesPlace is the secrets folder. What belongs there is configured.
type filesPlace struct {
	*pipeline
	files *sinks.Files
	texts *texts
}

func newFilesPlace(p *pipeline) *filesPlace {
	return &filesPlace{pipeline: p, files: sinks.NewFiles(p.cfg.Folders.Secrets, nil), texts: newTexts(p)}
}

func (p *filesPlace) sink() workers.Sink           { return p.files }
func (p *filesPlace) templates() workers.Templates { return p.texts }

func (p *filesPlace) altered(l *lane) []targets.Key { return p.files.Altered(l.targets.All()) }

func (p *filesPlace) prepare(ctx context.Context) {
	p.lanes[0].targets.Replace(p.cfg.Targets)
	if files := p.amend.files(p.cfg.Targets); len(files) > 0 {
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

func (p *filesPlace) settled(*lane, workers.Result) {}
func (p *filesPlace) held(*lane, conjur.HoldEvent)  {}
