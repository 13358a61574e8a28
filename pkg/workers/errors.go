package workers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// UnknownError means that the values of some of a target's variables are currently
// unknown. The target keeps its content.
type UnknownError struct {
	Key  targets.Key
	Errs []error // one per variable, in the order of the entries
	// TargetEmpty means that nothing of the target exists yet.
	TargetEmpty bool
}

func (e *UnknownError) Error() string {
	if !e.TargetEmpty {
		return fmt.Sprintf("%s keeps its last state: %s", e.Key, firstReasons(e.Errs))
	}
	// Without content there is nothing to remove, so a variable without a proof is simply
	// missing.
	var missing []string
	var reasons []error
	for _, err := range e.Errs {
		switch e := err.(type) {
		case *variables.SuspectError:
			missing = append(missing, e.Variable)
		case *variables.HeldError:
			missing = append(missing, e.Suspicion.Variable)
		default:
			reasons = append(reasons, err)
		}
	}
	if len(missing) > 0 {
		reasons = slices.Insert(reasons, 0, errors.New(noValue(missing)))
	}
	return fmt.Sprintf("%s is not delivered: %s", e.Key, firstReasons(reasons))
}

// noValue says that some variables have no value, and what to do.
func noValue(ids []string) string {
	return fmt.Sprintf("there is no value in Conjur, or none for this identity, for %s; check the ids and the policy", brief.List(ids))
}

// Unwrap returns the reasons.
func (e *UnknownError) Unwrap() []error { return e.Errs }

// RevokedError means that some of a target's variables are proven to be gone: deleted,
// never set, or no longer readable for this host.
type RevokedError struct {
	Key       targets.Key
	Variables []string
	Errs      []error // the proofs, one per variable
	// Parts are the affected data keys of a Secret, in ascending order. nil means
	// everything that the target holds.
	Parts []string
	// Kept means that the policy forbids removing content written earlier.
	Kept bool
	// Never means that the variables had no value since the process began, and that the
	// target had nothing of them.
	Never bool
	// TargetEmpty means that nothing of the target exists.
	TargetEmpty bool
}

func (e *RevokedError) Error() string {
	verb := "holds nothing"
	switch {
	case e.Never && (e.Parts == nil || e.TargetEmpty):
		return fmt.Sprintf("%s is not delivered: %s", e.Key, noValue(e.Variables))
	case e.Never:
		return fmt.Sprintf("%s is delivered without %s: %s", e.Key, brief.List(e.Parts), noValue(e.Variables))
	case e.Kept:
		verb = "keeps its last state, as removal is switched off"
	case e.Parts != nil:
		verb = "does not hold " + brief.List(e.Parts)
	}
	return fmt.Sprintf("%s %s: %s", e.Key, verb, firstReasons(e.Errs))
}

// neverFound reports whether this process has never found a value of any of the variables.
func (e *RevokedError) neverFound() bool {
	return !slices.ContainsFunc(e.Errs, func(err error) bool {
		gone, ok := errors.AsType[*variables.GoneError](err)
		return !ok || !gone.NeverFound
	})
}

// concerns reports whether the error is about a part.
func (e *RevokedError) concerns(part string) bool {
	return e.Parts == nil || slices.Contains(e.Parts, part)
}

// Unwrap returns the proofs.
func (e *RevokedError) Unwrap() []error { return e.Errs }

// RenderError means that values and template do not produce content. Only a changed
// value, template or configuration fixes that.
type RenderError struct {
	Key  targets.Key
	Part string // the data key of a Secret, which stays unchanged
	Err  error
	// Invalid means that the template itself is faulty, whatever the values.
	Invalid bool
}

func (e *RenderError) Error() string {
	if e.Part == "" {
		return fmt.Sprintf("rendering %s: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("rendering the data key %q of %s: %v", e.Part, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *RenderError) Unwrap() error { return e.Err }

// InvalidError means that a target's settings are faulty, so that the target stays
// unchanged. It can also mean that one part of a Secret's definition is faulty; then
// everything else was delivered. Only a changed definition fixes that.
type InvalidError struct {
	Key    targets.Key
	Faults []string // each says where and why
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("the definition of %s is faulty: %s", e.Key, strings.Join(brief.Some(e.Faults, brief.Reasons), "; "))
}

// Permanent reports whether no retry can fix an error of a Result. Such an error is worth
// a retry only after something has changed. If several errors were joined, each of them
// must be permanent. polled means that a poll detects a restored variable. Then a
// RevokedError is permanent too.
func Permanent(err error, polled bool) bool {
	switch e := err.(type) {
	case *RenderError, *InvalidError:
		return true
	case *RevokedError:
		return polled
	case *UnknownError:
		return false
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !Permanent(err, polled) })
	}
	var refused *sinks.RefusedError
	return errors.As(err, &refused)
}

// missingRetried is how long a missing variable is retried. Later, only the poll looks for
// it. When an application is installed, its variables often follow soon.
const missingRetried = time.Minute

// AwaitsPoll reports whether a Result failed only because variables are missing: Conjur has
// not returned them for longer than missingRetried, but no proof exists. A poll detects
// when that changes, so retries would only cost requests.
func AwaitsPoll(err error) bool {
	switch e := err.(type) {
	case *variables.SuspectError:
		return e.Observations > 0 && time.Since(e.FirstSeen) >= missingRetried
	case *UnknownError, interface{ Unwrap() []error }:
		all := e.(interface{ Unwrap() []error }).Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !AwaitsPoll(err) })
	}
	return false
}

// NamesTarget reports whether the text of a Result's error names the target.
func NamesTarget(err error) bool {
	switch e := err.(type) {
	case *UnknownError, *RevokedError, *RenderError, *InvalidError, *sinks.RefusedError, *sinks.TargetError:
		return true
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), NamesTarget)
	}
	return false
}

// joined is errors.Join, except that it returns a single error unchanged.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// firstReasons shows the first few of many errors. A target with a thousand unknown
// variables gets one line in the log, not a thousand.
func firstReasons(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(brief.Some(texts, brief.Reasons), "; ")
}

// goneOf returns the proofs for the target's variables that are gone; nil if none is. key
// is the target's key.
func goneOf(key targets.Key, t *targets.Target, answers map[string]variables.Answer) *RevokedError {
	e := &RevokedError{Key: key}
	for _, id := range t.Variables() {
		if a := answers[id]; a.Verdict == variables.Gone {
			e.Variables, e.Errs = append(e.Variables, id), append(e.Errs, a.Err)
		}
	}
	if len(e.Variables) == 0 {
		return nil
	}
	return e
}

// unknownOf returns the reasons why variables are neither found nor gone.
func unknownOf(ids []string, answers map[string]variables.Answer) (errs []error) {
	for _, id := range ids {
		a := answers[id]
		switch {
		case a.Verdict == variables.Found || a.Verdict == variables.Gone:
		case a.Err == nil:
			errs = append(errs, &conjur.VariableError{Variable: id, Err: errNoAnswer})
		default:
			errs = append(errs, a.Err)
		}
	}
	return errs
}
