package pipeline

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
)

// requestsLook is the time between looks for an application's request without
// an event; a look is a stat.
const requestsLook = 10 * time.Second

// files is the secrets folder. What belongs there is configured.
type files struct {
	*pipeline
	*sinks.Files
	requests *sources.Requests
	onDisk   *onDisk // nil: the folder is in memory, or nobody looks from outside
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

// prime takes over what is configured, and removes what an earlier process left
// half-way.
func (f *files) prime(ctx context.Context) {
	f.lanes()[0].targets.Replace(f.config().Targets)
	if own := f.Command.files(f.config().Targets); len(own) > 0 {
		if f.OnDisk() {
			f.Log.Warn("Secrets come to rest on a disk; make the volume of the secrets folder an emptyDir with medium: Memory", zap.String("folder", f.config().Folders.Secrets))
			if f.host != nil {
				f.onDisk = &onDisk{f.pipeline}
			}
		}
		if err := f.Clean(ctx, own); ctx.Err() == nil { // else the next start looks
			f.troubles.Report("leftovers", err)
		}
	}
}

// sources watch nothing in a one-shot process, and no template where refresh is off.
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

// Requested brings back what is missing.
func (f *files) Requested() {
	keys := f.keys()
	f.Log.Info("Bringing back what the application asked for", zap.Int("targets", len(keys)))
	f.set.Ask(keys...)
	f.Enqueue(queue.Hint{Trigger: "request", Wakes: true}, keys...)
}
