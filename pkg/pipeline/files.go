package pipeline

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
)

// requestsLook is the time between checks for an application's request without an event.
// A check is a stat.
const requestsLook = 10 * time.Second

// files is the secrets folder. The configuration defines its content.
type files struct {
	*pipeline
	*sinks.Files
	requests *sources.Requests
	onDisk   *onDisk // nil if the folder is in memory, or without probes or metrics
}

func newFiles(p *pipeline) *files {
	f := &files{pipeline: p, Files: sinks.NewFiles(p.config().Folders.Secrets, nil)}
	f.requests = &sources.Requests{
		Folder:      p.config().Folders.Status,
		Interval:    requestsLook,
		Application: f,
		Reporter:    p.troubles,
	}
	return f
}

// prime adds the configured targets, and removes partial writes of an earlier process.
func (f *files) prime(ctx context.Context) {
	f.lanes()[0].targets.Replace(f.config().Targets)
	if own := f.Command.files(f.config().Targets); len(own) > 0 {
		if f.OnDisk() {
			f.Log.Warn("Secrets come to rest on a disk; make the volume of the secrets folder an emptyDir with medium: Memory", zap.String("folder", f.config().Folders.Secrets))
			if f.host != nil {
				f.onDisk = &onDisk{f.pipeline}
			}
		}
		if err := f.Clean(ctx, own); ctx.Err() == nil { // otherwise the next start checks
			f.troubles.Report("leftovers", err)
		}
	}
}

// sources returns no watches in a one-shot process, and none on templates if refresh is
// off.
func (f *files) sources() (all []source) {
	if f.onDisk != nil {
		all = append(all, f.onDisk)
	}
	if f.config().Mode.OneShot() {
		return all
	}
	all = append(all, f.requests)
	if f.config().Refresh.Enabled {
		all = append(all, f.texts.sources()...)
	}
	return all
}

// TakeRequested implements sources.Application.
func (f *files) TakeRequested() (bool, error) { return f.status.TakeRequested() }

// Requested restores missing files.
func (f *files) Requested() {
	keys := f.keys()
	f.Log.Info("Bringing back what the application asked for", zap.Int("targets", len(keys)))
	f.set.Ask(keys...)
	f.Enqueue(queue.Hint{Trigger: "request", Wakes: true}, keys...)
}
