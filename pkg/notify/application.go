package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Application is the single application that runs beside Syncer. It is notified through
// the status folder. Use NewApplication to create an Application.
type Application struct {
	status  *Status
	journal journal
	inPlace *InPlace
	targets Targets
	log     *zap.Logger

	mu   sync.Mutex
	also []Notifier
	said string // the last text of MissingFile
	owed owed
}

// Targets lists all targets with their known state.
type Targets interface{ Records() []records.Record }

// NewApplication returns the application of a status folder. Its notifications are also
// logged.
func NewApplication(status *Status, all Targets, log *zap.Logger) *Application {
	return &Application{status: status, journal: journal{folder: status.folder}, inPlace: newInPlace(status, log), targets: all, log: log}
}

// InPlace returns the restarts in place that follow updates.
func (a *Application) InPlace() *InPlace { return a.inPlace }

// announced logs that a sentinel file was written.
func (a *Application) announced(sentinel string) {
	a.log.Info("Sentinel file written", zap.String("file", sentinel))
}

// Notifier is an additional way to notify the application of an update.
type Notifier func(context.Context) error

// SetNotifiers adds ways to notify the application, each used after UpdatedFile was
// written. A Notifier that fails is not retried before the next update, because the
// retries might never end.
func (a *Application) SetNotifiers(notifiers ...Notifier) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.also = notifiers
}

// Writing records that a write of a target is about to start. Call wrote when the write
// has ended, also after an error. If the process dies before an Updated that began after
// the end of the write, the next process notifies the application; see Recover.
func (a *Application) Writing() (wrote func(), err error) { return a.journal.writing() }

// Updated notifies the application that something was written, unless the application has
// not been provided for yet. It announces a round.
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

// notify does the work of Updated. While err is not nil, the application has not been
// notified. failed is the error of the Notifiers.
func (a *Application) notify(ctx context.Context) (failed, err error) {
	provided, err := a.status.Provided()
	if err != nil {
		return nil, fmt.Errorf("sentinel file: %w", err)
	}
	if !provided {
		_, err := os.Stat(string(a.status.folder)) // without it, nobody knows of the update
		return nil, err
	}
	if err := errors.Join(a.inPlace.require(), a.status.SetUpdated()); err != nil {
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

// Recover notifies the application of writes that an earlier process did not announce
// before it died. If the machine started since then, the application did too, and Recover
// removes the earlier notifications instead.
func (a *Application) Recover(ctx context.Context) error {
	entered := a.status.enterBoot(a.inPlace.forget)
	marks, err := a.journal.leftBehind()
	err = errors.Join(entered, err)
	var failed error
	if err == nil && len(marks) > 0 {
		failed, err = a.notify(ctx)
	}
	a.owe(func(o *owed) { o.recovery = err != nil })
	if err != nil {
		return err
	}
	errs := []error{failed}
	for _, mark := range marks {
		errs = append(errs, a.journal.remove(mark))
	}
	return errors.Join(errs...)
}

// Provided notifies the application that everything is there, after every target has been
// delivered. Until then, it reports the missing targets. An earlier process may already
// have notified the application.
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

// missing lists the targets that have never been delivered.
func (a *Application) missing() (missing []records.Record) {
	for _, r := range a.targets.Records() {
		if r.Status.Proven.IsZero() {
			missing = append(missing, r)
		}
	}
	return missing
}

// Limits of MissingFile, which is for human readers.
const (
	mostMissing = 20  // targets
	mostReason  = 500 // bytes of each
	mostShown   = 4000
)

// SayMissing writes MissingFile, for people who wait and do not see the log. It does
// nothing if everything is delivered, or once was.
func (a *Application) SayMissing() error {
	missing := a.missing()
	if provided, err := a.status.Provided(); len(missing) == 0 || provided || err != nil {
		return err
	}
	var text strings.Builder
	a.mu.Lock()
	for i, r := range missing {
		if i == mostMissing {
			fmt.Fprintf(&text, "and %d more\n", len(missing)-i)
			break
		}
		why := "not tried yet"
		if r.Status.Err != nil {
			why = terminal.Plain(brief.OneLine(r.Status.Err.Error(), mostReason))
		}
		fmt.Fprintf(&text, "%s: %s\n", r.Spec.Key, why)
	}
	same := text.String() == a.said
	a.said = text.String()
	a.mu.Unlock()
	if same {
		return nil
	}
	return a.status.put(MissingFile, note{text: []byte(text.String()), mode: 0o644})
}

// Missing returns the content of MissingFile as one line; "" without the file.
func (s *Status) Missing() (string, error) {
	text, err := s.readFile(MissingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return terminal.Plain(brief.OneLine(string(text), mostShown)), err
}

// owed is the notifications that the application has not received, for example because
// the status folder was full or read-only.
type owed struct {
	update, provision bool
	recovery          bool // of writes of earlier processes
}

func (a *Application) owe(f func(*owed)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.owed)
}

func (a *Application) owes() owed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owed
}

// scriptsSubject is the name that Retry uses for the scripts of the status folder.
const scriptsSubject = "scripts"

// Retry repeats the work in which Updated, Provided, Recover and Status.InstallScripts
// failed, and reports whether all of it is done. It reports the outcome of each by the
// names of the sentinel files and "scripts".
func (a *Application) Retry(ctx context.Context, report func(subject string, err error)) (done bool) {
	try := func(due bool, subject string, f func() error) {
		if due {
			report(subject, f())
		}
	}
	due := a.owes()
	try(a.status.lacking.Load(), scriptsSubject, a.status.InstallScripts)
	try(due.provision, ProvidedFile, a.Provided)
	try(due.recovery, UpdatedFile, func() error { return a.Recover(ctx) })
	try(due.update, UpdatedFile, func() error { return a.Updated(ctx) })
	due = a.owes()
	return !a.status.lacking.Load() && !due.provision && !due.update && !due.recovery
}
