package workers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/targets"
)

// UnknownError says that the value of some of a target's variables is not
// known now, so the target keeps what it holds.
type UnknownError struct {
	Key  targets.Key
	Errs []error // one a variable, in the order of the entries
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s keeps its last state: %s", e.Key, list(e.Errs))
}

// Unwrap gives the reasons.
func (e *UnknownError) Unwrap() []error { return e.Errs }

// RevokedError says that some of a target's variables are proven to be gone:
// deleted, never set, or no longer ours to read.
type RevokedError struct {
	Key       targets.Key
	Variables []string
	Errs      []error // the proofs, one a variable
	// Kept: the policy forbids to remove what was written earlier.
	Kept bool
}

func (e *RevokedError) Error() string {
	verb := "holds nothing"
	if e.Kept {
		verb = "keeps its last state, as removal is switched off"
	}
	return fmt.Sprintf("%s %s: %s", e.Key, verb, list(e.Errs))
}

// Unwrap gives the proofs.
func (e *RevokedError) Unwrap() []error { return e.Errs }

// RenderError says that values and template do not make a content. Only a
// changed value, template or configuration mends that.
type RenderError struct {
	Key targets.Key
	Err error
}

func (e *RenderError) Error() string { return fmt.Sprintf("rendering %s: %v", e.Key, e.Err) }

// Unwrap gives the cause.
func (e *RenderError) Unwrap() error { return e.Err }

// list shows a few of many errors: a target with a thousand unknown variables
// has one line in the log, not a thousand.
func list(errs []error) string {
	const most = 5
	var texts []string
	for _, err := range errs[:min(most, len(errs))] {
		texts = append(texts, err.Error())
	}
	texts = slices.Compact(texts)
	if n := len(errs) - most; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

func goneOf(t *targets.Target, answers map[string]conjur.Answer) *RevokedError {
	e := &RevokedError{Key: t.Key}
	for _, id := range t.Variables() {
		if a := answers[id]; a.Verdict == conjur.Gone {
			e.Variables, e.Errs = append(e.Variables, id), append(e.Errs, a.Err)
		}
	}
	if len(e.Variables) == 0 {
		return nil
	}
	return e
}

func unknownOf(t *targets.Target, answers map[string]conjur.Answer) *UnknownError {
	e := &UnknownError{Key: t.Key}
	for _, id := range t.Variables() {
		if a := answers[id]; a.Verdict != conjur.Found {
			err := a.Err
			if err == nil {
				err = fmt.Errorf("variable %q: no answer", id)
			}
			e.Errs = append(e.Errs, err)
		}
	}
	if len(e.Errs) == 0 {
		return nil
	}
	return e
}
