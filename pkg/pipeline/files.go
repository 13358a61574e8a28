package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// requestsPollInterval is the time between checks for an application's request without an event.
// A check is a stat.
const requestsPollInterval = 10 * time.Second

// files is the secrets folder. The configuration defines its content.
type files struct {
	settings *settings
	lanes    *lanes
	targets  *records.Lane // of the only identity
	folder   *sinks.Files
	command  *Command // nil: all targets are files
	app      *application
	texts    *sources.TemplateTexts
	requests []source // of the application; none in a one-shot process
	onDisk   *onDisk
	warns    bool // the folder is on a disk
	troubles *health.Troubles
	log      *zap.Logger
}

// prime adds the configured targets, and removes partial writes of an earlier process.
func (f *files) prime(ctx context.Context) {
	cfg := f.settings.config()
	f.targets.Replace(cfg.Targets)
	if own := f.command.files(cfg.Targets); len(own) > 0 {
		if f.warns = f.folder.OnDisk(); f.warns {
			f.log.Warn("The secrets folder is on a disk; make its volume an emptyDir with medium: Memory", zap.String("folder", cfg.Folders.Secrets))
		}
		if err := f.folder.Clean(ctx, own); ctx.Err() == nil { // otherwise the next start checks
			f.troubles.Report("leftovers", err)
		}
	}
}

// prepare implements destination. Files need no other parts. At the start, the secrets
// folder must exist: its volume does not appear later.
func (f *files) prepare(before, cfg *config.Config) (change, error) {
	if before == nil && len(f.command.files(cfg.Targets)) > 0 {
		if err := f.folder.Missing(); err != nil {
			return change{}, err
		}
	}
	replace := func() {
		f.lanes.apply(queue.Hint{Trigger: "configuration", Wakes: true}, f.targets.Replace(cfg.Targets))
	}
	return change{commit: func() {}, finish: replace}, nil
}

// sources returns no watches on templates if refresh is off, or in a one-shot process.
func (f *files) sources() (all []source) {
	if f.warns {
		all = append(all, f.onDisk)
	}
	all = append(all, f.requests...)
	if cfg := f.settings.config(); cfg.Refresh.Enabled && !cfg.Mode.OneShot() {
		all = append(all, f.texts.Watches()...)
	}
	return all
}

// Settled implements SettledListener.
func (f *files) Settled(o workers.Outcome) {
	f.lanes.apply(queue.Hint{Trigger: "drift", Wakes: true}, o.Again)
}

// Altered implements sources.Results.
func (f *files) Altered() []targets.Key { return f.folder.Altered(f.targets.Each()) }

// TakeRequested implements sources.Application.
func (f *files) TakeRequested() (bool, error) { return f.app.status.TakeRequested() }

// Requested restores missing files.
func (f *files) Requested() {
	keys := f.targets.Keys()
	f.log.Info("Restoring the files that the application requested", zap.Int("targets", len(keys)))
	f.targets.Ask(keys...)
	f.lanes.Enqueue(queue.Hint{Trigger: "request", Wakes: true}, keys...)
}

// configured is the inventory of files: the configuration names all targets.
type configured struct{}

func (configured) known() error             { return nil }
func (configured) ready() ([]string, error) { return nil, nil }

// onDisk warns on this process's Pod that its secrets are stored on a disk. It sends one
// Event, if the API server token is bound to a Pod and may create it. The log contains
// the warning too, so nothing depends on the Event.
type onDisk struct {
	settings *settings
	cluster  *kube.Client // nil: it connects for the Event
	clients  connect.Options
	log      *zap.Logger
}

// Run returns after it has sent the Event, or a few seconds later.
func (d *onDisk) Run(ctx context.Context) {
	cluster := d.cluster
	if cluster == nil {
		made, err := connect.Kubernetes(d.settings.config().Kubernetes, d.clients)
		if err != nil {
			d.Report("", err)
			return
		}
		defer made.Close()
		cluster = made
	}
	of := config.BoundTo([]byte(cluster.Token()))
	if of.Pod.Name == "" {
		d.Report("", errors.New("the token for the API server is bound to no Pod"))
		return
	}
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: of.Namespace, Name: of.Pod.Name, UID: types.UID(of.Pod.UID)}
	r := cluster.NewRecorder("syncer", d)
	r.Event(pod, corev1.EventTypeWarning, reasonOnDisk, "The secrets folder is on a disk; make its volume an emptyDir with medium: Memory")
	now, end := context.WithCancel(ctx)
	end()
	r.Run(now)
}

// Report implements kube.Reporter.
func (d *onDisk) Report(_ string, err error) {
	if err != nil {
		d.log.Debug("No Event was sent about the secrets folder on a disk", zap.Error(err))
	}
}

// absent reports whether a delivered file does not exist, because the application deleted it.
func absent(folder string, all []records.Record) bool {
	return slices.ContainsFunc(all, func(r records.Record) bool {
		if r.Status.Proven.IsZero() || r.Status.RevokedRemoved {
			return false
		}
		_, err := os.Lstat(filepath.Join(folder, r.Spec.File.Path))
		return errors.Is(err, fs.ErrNotExist)
	})
}
