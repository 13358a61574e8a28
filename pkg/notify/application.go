package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/targets"
)

// Application is the one application beside which Syncer runs, told through
// the status folder. Make it with NewApplication.
type Application struct {
	status  *Status
	journal journal
	targets Targets
	log     *zap.Logger

	mu   sync.Mutex
	also []Teller
	said string // what MissingFile was given
	owed owed
}

// Targets lists all targets and what is known of them.
type Targets interface{ Records() []targets.Record }

// NewApplication makes the application of a status folder. What it is told goes
// to the log too.
func NewApplication(status *Status, all Targets, log *zap.Logger) *Application {
	return &Application{status: status, journal: journal{folder: status.folder}, targets: all, log: log}
}

// told logs that the application was told by a sentinel file.
func (a *Application) told(sentinel string) {
	a.log.Info("Sentinel file written", zap.String("file", sentinel))
}

// Teller is another way to tell the application that something was updated.
type Teller func(context.Context) error

// SetTellers has the application told in further ways, each time after
// UpdatedFile was written. A way that fails is not tried again before the next
// update: it would have to be tried for ever.
func (a *Application) SetTellers(tellers ...Teller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.also = tellers
}

// Writing notes that a target is about to be written. If the process dies
// before Updated, the next one tells the application; see Recover.
func (a *Application) Writing() error { return a.journal.writing() }

// Updated tells the application that something was written, unless it has
// not been provided for yet. It is what a round announces.
func (a *Application) Updated(ctx context.Context) error {
	told := a.journal.telling()
	a.owe(func(o *owed) { o.update = false })
	failed, err := a.tell(ctx)
	if err != nil {
		a.owe(func(o *owed) { o.update = true })
		return err
	}
	return errors.Join(failed, told())
}

// tell tells the application unless it has not been provided for yet. While err
// is not nil it has not been told; failed is about the further ways.
func (a *Application) tell(ctx context.Context) (failed, err error) {
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
	a.told(UpdatedFile)
	a.mu.Lock()
	also := a.also
	a.mu.Unlock()
	var errs []error
	for _, tell := range also {
		errs = append(errs, tell(ctx))
	}
	return errors.Join(errs...), nil
}

// Recover tells the application what an earlier process wrote and did not
// live to tell. Call it at the start, before the first Writing.
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
	failed, err := a.tell(ctx)
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

// Provided tells the application that all is there, once every target has
// been delivered, and what is missing until then. An earlier process may have
// told it already.
func (a *Application) Provided() error {
	if len(a.missing()) > 0 {
		a.owe(func(o *owed) { o.provision = false })
		return a.SayMissing()
	}
	provided, err := a.status.Provided()
	if err == nil && !provided {
		if err = a.status.SetProvided(); err == nil {
			a.told(ProvidedFile)
		}
	}
	a.owe(func(o *owed) { o.provision = err != nil })
	return err
}

// missing lists the targets that have not been delivered even once.
func (a *Application) missing() (missing []targets.Record) {
	for _, r := range a.targets.Records() {
		if r.Status.Proven.IsZero() {
			missing = append(missing, r)
		}
	}
	return missing
}
