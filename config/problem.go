package config

import (
	"fmt"
	"strings"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/targets"
)

// Problem is an error in an operator's input, or, in a warning, only a doubt.
type Problem struct {
	// Key is the location of the problem. It is an annotation such as
	// "conjur.org/secret-file-format.db", or an environment variable. It may also be a
	// place in the configuration file such as "syncer.yaml:7: refresh.interval", or a
	// file. It is empty if the problem has no location.
	Key string `json:"key"`
	// Message says what the problem is and what to do. It contains no secret value.
	Message string `json:"message"`
}

// Error returns the key with its kind, and the message.
func (p Problem) Error() string {
	switch {
	case p.Key == "":
		return p.Message
	case strings.HasPrefix(p.Key, domain):
		return "annotation " + p.Key + ": " + p.Message
	}
	return p.Key + ": " + p.Message
}

// InvalidError contains every problem of one Load.
type InvalidError struct {
	Problems []Problem // at least one
}

// Error lists the problems, one per line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems, for errors.Is and errors.As.
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// report collects the problems and warnings of one Load.
type report struct {
	problems, warnings []Problem

	// affected are the targets that concerning set for the check in progress. Empty means
	// that its problems affect the whole process.
	affected []targets.Key
	faults   map[targets.Key][]string // the problems of single targets; see takeFaults
	fatal    bool                     // a problem affects the whole process
	// correctable is set during a check of a template file, which may be corrected without
	// a change of the configuration. Its problems are reported, but do not count as faults:
	// the sync of the target finds them again.
	correctable bool
}

// fail reports a problem. Unless it is correctable, it becomes a fault of the affected
// targets, or is fatal if there are none.
func (r *report) fail(key, format string, args ...any) {
	p := Problem{key, fmt.Sprintf(format, args...)}
	r.problems = append(r.problems, p)
	if r.correctable {
		return
	}
	r.fatal = r.fatal || len(r.affected) == 0
	for _, target := range r.affected {
		r.addFaults(target, p.Error())
	}
}

// concerning calls check, whose problems affect only these targets. In nested calls, the
// keys of the outer one apply.
func (r *report) concerning(check func(), keys ...targets.Key) {
	if len(r.affected) == 0 {
		r.affected = keys
		defer func() { r.affected = nil }()
	}
	check()
}

// addFaults adds problems of a target.
func (r *report) addFaults(target targets.Key, faults ...string) {
	if len(faults) == 0 {
		return
	}
	if r.faults == nil {
		r.faults = map[targets.Key][]string{}
	}
	r.faults[target] = append(r.faults[target], faults...)
}

// takeFaults returns the problems of a target, for its Faults. Problems that nobody takes
// belong to no target of the Config, so they affect the whole process.
func (r *report) takeFaults(target targets.Key) []string {
	faults := r.faults[target]
	delete(r.faults, target)
	return faults
}

// isolated reports whether all problems affect single targets only. Call it after takeFaults
// was called for each target.
func (r *report) isolated() bool { return !r.fatal && len(r.faults) == 0 }

// itemKey stands for the key of an item in a list of the configuration file, until the
// item's name has been read.
func itemKey(list string, i int) targets.Key { return targets.Key(fmt.Sprintf("%s[%d]", list, i)) }

// warn reports a doubt.
func (r *report) warn(key, format string, args ...any) {
	r.warnings = append(r.warnings, Problem{key, fmt.Sprintf(format, args...)})
}

// failAll reports each of the errors that err joins.
func (r *report) failAll(key string, err error) {
	for _, e := range joined.Errors(err) {
		r.fail(key, "%v", e)
	}
}
