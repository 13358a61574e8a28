package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// ErrRevoked ends a process after a removal.
var ErrRevoked = errors.New("a variable was deleted or revoked in Conjur, and what held its value was removed")

// revocation ends the process after a removal, if the configuration says so.
type revocation struct {
	settings *settings
	always   bool // in a one-shot process
	once     sync.Once
	removed  chan struct{} // closed when a removal ends the process
}

// Settled implements SettledListener.
func (r *revocation) Settled(o workers.Outcome) {
	if o.Removed && (r.always || r.settings.config().ExitOnRevoked) {
		r.once.Do(func() { close(r.removed) })
	}
}

// err returns ErrRevoked if the process must end because of a removal.
func (r *revocation) err() error {
	select {
	case <-r.removed:
		return ErrRevoked
	default:
		return nil
	}
}

// ending decides when a pipeline ends, and whether it did its job.
type ending interface {
	// untilDone waits until the job is done, or ctx ends.
	untilDone(ctx context.Context)
	// verdict returns, at the end, why the job was not done.
	verdict() error
}

// RestartError ends a process so that the kubelet restarts all containers of its Pod. Call
// Record just before the exit with config.InPlaceStatus.
type RestartError struct {
	inPlace *notify.InPlace
	absent  func() bool // nil: no files
}

// Record is [notify.InPlace.Record].
func (e *RestartError) Record() error { return e.inPlace.Record(e.absent != nil && e.absent()) }

func (*RestartError) Error() string { return "all containers of the Pod are to restart in place" }

// service works until ctx ends, until it has removed revoked values and updated all
// others, or until all containers of the Pod restart in place.
type service struct {
	lanes      *lanes
	revocation *revocation
	restart    *notify.InPlace // nil without an application
	absent     func() bool     // whether the application deleted a file; nil: there are no files
}

func (s service) untilDone(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.restart.Ended():
	case <-s.revocation.removed:
		each(s.lanes.all(), func(l *lane) { l.lastSync(ctx, l.targets.Keys()) })
	}
}

func (s service) verdict() error {
	select {
	case <-s.restart.Ended():
		return cmp.Or[error](s.revocation.err(), &RestartError{s.restart, s.absent})
	default:
		return s.revocation.err()
	}
}

// job works until a one-shot process has delivered or given up every target.
type job struct {
	settings   *settings
	set        *records.Set
	lanes      *lanes
	app        *application
	revocation *revocation
	complete   func(context.Context) error // reads the targets that could not be read at first

	incomplete error // which targets are unknown
}

func (j *job) untilDone(ctx context.Context) {
	j.incomplete = j.complete(ctx)
	each(j.lanes.all(), func(l *lane) { l.lastRetries(ctx) }) // verdict needs it
}

func (j *job) verdict() error {
	err := errors.Join(j.incomplete, j.revocation.err(), j.undelivered())
	switch {
	case err != nil:
		return err
	case len(j.lanes.keys()) == 0 && j.settings.config().Destination == config.DestinationKubernetes:
		return fmt.Errorf("there is nothing to deliver: no Secret of the namespace has the label %s=%s", targets.ManagedLabel, targets.ManagedValue)
	}
	return j.app.unprovided()
}

// undelivered names the targets that were not delivered, and all variables that are
// missing.
func (j *job) undelivered() error {
	failed := map[targets.Key]error{}
	var missing []targets.Key
	for _, r := range j.set.Records() {
		if r.Status.Err != nil {
			failed[r.Spec.Key] = r.Status.Err
		}
		if r.Status.Proven.IsZero() {
			missing = append(missing, r.Spec.Key)
		}
	}
	if len(missing) > 0 {
		text := fmt.Sprintf("%d of %d targets were not delivered: %s", len(missing), len(j.lanes.keys()), join(missing))
		if ids := missingVariables(failed); len(ids) > 0 {
			text += "; Conjur has no value, or none for this identity, for: " + join(ids)
		}
		return errors.New(text)
	}
	if len(failed) > 0 {
		return fmt.Errorf("not up to date: %s", join(slices.Sorted(maps.Keys(failed))))
	}
	return nil
}

// missingVariables lists the variables that are gone or seem gone.
func missingVariables(failed map[targets.Key]error) []string {
	ids := map[string]bool{}
	for _, err := range failed {
		var unknown *workers.UnknownError
		var revoked *workers.RevokedError
		switch {
		case errors.As(err, &revoked):
			for _, id := range revoked.Variables {
				ids[id] = true
			}
		case errors.As(err, &unknown):
			for _, err := range unknown.Errs {
				var suspect *variables.SuspectError
				if errors.As(err, &suspect) {
					ids[suspect.Variable] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

func join[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}
