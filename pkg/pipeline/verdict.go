package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// ErrRevoked ends a process after a removal.
var ErrRevoked = errors.New("a variable was deleted or revoked in Conjur, and what held its value was removed")

// untilDone waits until the job is done, or ctx ends. A one-shot process is done when it
// has delivered or given up every target. A sidecar is done when it has removed revoked
// values and updated all others. The error says which information could not be read.
func (p *pipeline) untilDone(ctx context.Context) (incomplete error) {
	if p.settings.config().Mode.OneShot() {
		incomplete = p.inventory.complete(ctx)
		each(p.lanes.all(), func(l *lane) { l.lastRetries(ctx) }) // verdict needs it
		return incomplete
	}
	select {
	case <-ctx.Done():
	case <-p.revocation.removed:
		each(p.lanes.all(), func(l *lane) { l.lastSync(ctx, l.targets.Keys()) })
	}
	return nil
}

// verdict returns, at the end, why the job was not done. incomplete says which targets
// are unknown.
func (p *pipeline) verdict(incomplete error) error {
	errs := []error{incomplete}
	if p.revocation.mustExit() {
		errs = append(errs, ErrRevoked)
	}
	if cfg := p.settings.config(); cfg.Mode.OneShot() {
		errs = append(errs, p.undelivered())
		switch {
		case errors.Join(errs...) != nil:
		case len(p.lanes.keys()) == 0 && cfg.Destination == config.DestinationKubernetes:
			errs = append(errs, fmt.Errorf("there is nothing to deliver: no Secret of the namespace has the label %s=%s", targets.ManagedLabel, targets.ManagedValue))
		default:
			errs = append(errs, p.app.unprovided())
		}
	}
	return errors.Join(errs...)
}

// undelivered names the targets that a one-shot process did not deliver, and all
// variables that it missed.
func (p *pipeline) undelivered() error {
	failed := map[targets.Key]error{}
	var missing []targets.Key
	for _, r := range p.set.Records() {
		if r.Status.Err != nil {
			failed[r.Spec.Key] = r.Status.Err
		}
		if r.Status.Proven.IsZero() {
			missing = append(missing, r.Spec.Key)
		}
	}
	if len(missing) > 0 {
		text := fmt.Sprintf("%d of %d targets were not delivered: %s", len(missing), len(p.lanes.keys()), join(missing))
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
