package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/targets/records"
)

// Application is the one application beside which Syncer runs, notified through
// the status folder. Make it with NewApplication.
type Application struct {
	status  *Status
	journal journal
	targets Targets
	log     *zap.Logger

	mu   sync.Mutex
	also []Notifier
	said string // what MissingFile was given
	owed owed
}

// Targets lists all targets and what is known of them.
type Targets interface{ Records() []records.Record }

// NewApplication makes the application of a status folder. What it is notified of
// goes to the log too.
func NewApplication(status *Status, all Targets, log *zap.Logger) *Application {
	return &Application{status: status, journal: journal{folder: status.folder}, targets: all, log: log}
}

// announced logs that a sentinel file was written.
func (a *Application) announced(sentinel string) {
	a.log.Info("Sentinel file written", zap.String("file", sentinel))
}

// Notifier is another way to notify the application of an update.
type Notifier func(context.Context) error

// SetNotifiers has the application notified in further ways, each time after
// UpdatedFile was written. A way that fails is not tried again before the next
// update: it would have to be tried for ever.
func (a *Application) SetNotifiers(notifiers ...Notifier) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.also = notifiers
}

// Writing notes that a target is about to be written. If the process dies
// before Updated, the next one notifies the application; see Recover.
func (a *Application) Writing() error { return a.journal.writing() }

// Updated notifies the application that something was written, unless it has
// not been provided for yet. It is what a round announces.
func (a *Application) Updated(ctx context.Context) error {
	announced := a.journal.announcing()
	a.owe(func(o *owed) { o.update = false })
	failed, err := a.notify(ctx)
	if err != nil {
		a.owe(func(o *owed) { o.update = true })
		return err
	}
	return errors.Join(failed, announced())
}

// notify does so unless the application has not been provided for yet. While err
// is not nil it has not been notified; failed is about the further ways.
func (a *Application) notify(ctx context.Context) (failed, err error) {
	provided, err := a.status.Provided()
	if err != nil {
		return nil, fmt.Errorf("sentinel file: %w", err)
	}
	if !provided {
		_, err := os.Stat(string(a.status.folder)) // without it nobody knows
		return nil, err
	}
	if err := a.status.SetUpdated(); err != nil {
		return nil, err
	}
	a.announced(UpdatedFile)
	a.mu.Lock()
	also := a.also
	a.mu.Unlock()
	var errs []error
	for _, notify := range also {
		errs = append(errs, notify(ctx))
	}
	return errors.Join(errs...), nil
}

// Recover notifies the application of what an earlier process wrote and did not
// live to announce. Call it at the start, before the first Writing.
func (a *Application) Recover(ctx context.Context) error {
	marks, err := a.journal.leftBehind()
	if err != nil {
		return err
	}
	return a.recover(ctx, marks)
}

func (a *Application) recover(ctx context.Context, marks []string) error {
	a.owe(func(o *owed) { o.marks = nil })
	if len(marks) == 0 {
		return nil
	}
	failed, err := a.notify(ctx)
	if err != nil {
		a.owe(func(o *owed) { o.marks = marks })
		return err
	}
	errs := []error{failed}
	for _, mark := range marks {
		errs = append(errs, a.status.remove(mark))
	}
	return errors.Join(errs...)
}

// Provided notifies the application that all is there, once every target has
// been delivered, and says what is missing until then. An earlier process may
// have done so already.
func (a *Application) Provided() error {
	if len(a.missing()) > 0 {
		a.owe(func(o *owed) { o.provision = false })
		return a.SayMissing()
	}
	provided, err := a.status.Provided()
	if err == nil && !provided {
		if err = a.status.SetProvided(); err == nil {
			a.announced(ProvidedFile)
		}
	}
	a.owe(func(o *owed) { o.provision = err != nil })
	return err
}

// missing lists the targets that have not been delivered even once.
func (a *Application) missing() (missing []records.Record) {
	for _, r := range a.targets.Records() {
		if r.Status.Proven.IsZero() {
			missing = append(missing, r)
		}
	}
	return missing
}
