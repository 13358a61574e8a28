package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// errRevoked is the end of a process that had to remove something.
var errRevoked = errors.New("a variable was deleted or revoked in Conjur, and what held its value was removed")

// verdict tells, at the end, whether the job was done.
func (p *pipeline) verdict() error {
	var errs []error
	select {
	case <-p.exitOnRevoked():
		errs = append(errs, errRevoked)
	default:
	}
	if p.cfg.Mode.OneShot() {
		errs = append(errs, p.undelivered())
	}
	return errors.Join(errs...)
}

// undelivered names the targets that a one-shot process leaves behind, and
// all variables that it missed.
func (p *pipeline) undelivered() error {
	failed := p.queue.Errors()
	if missing := p.app.Missing(); len(missing) > 0 {
		text := fmt.Sprintf("%d of %d targets were not delivered: %s", len(missing), len(p.targets.Keys()), join(missing))
		if ids := missingVariables(failed); len(ids) > 0 {
			text += "; Conjur has no value, or none for this identity, for: " + join(ids)
		}
		return errors.New(text)
	}
	if len(failed) > 0 {
		return fmt.Errorf("not up to date: %s", join(slices.Sorted(maps.Keys(failed))))
	}
	if provided, err := p.status.Provided(); err != nil || !provided {
		return fmt.Errorf("all is delivered, but the file %s could not be written", notify.ProvidedFile)
	}
	return nil
}

// missingVariables lists the variables that are gone, or seem to be.
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
				var suspect *conjur.SuspectError
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
