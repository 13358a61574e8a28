package notify

import "context"

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
