package config

import (
	"fmt"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
)

// Problem is one thing that is wrong, or in a warning only doubtful, with
// what an operator wrote.
type Problem struct {
	// Key is where it was written: an annotation such as
	// "conjur.org/secret-file-format.db", an environment variable, a place in
	// the configuration file such as "syncer.yaml:7: refresh.interval", or a
	// file. Empty: what is wrong is nothing that was written.
	Key string `json:"key"`
	// Message says what is wrong and what to do. It holds no secret value.
	Message string `json:"message"`
}

// Error returns the key, with what kind of thing it is, and the message.
func (p Problem) Error() string {
	switch {
	case p.Key == "":
		return p.Message
	case strings.HasPrefix(p.Key, domain):
		return "annotation " + p.Key + ": " + p.Message
	}
	return p.Key + ": " + p.Message
}

// InvalidError is every problem of one Load.
type InvalidError struct {
	Problems []Problem // at least one
}

// Error lists the problems, one a line.
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

	about  []targets.Key            // the targets that alone are concerned by what fails now; none: the process
	faults map[targets.Key][]string // the problems of single targets
	fatal  bool                     // a problem concerns the process
	// passing: what fails now is left to the sync of the target, as it may be
	// corrected without a change of the configuration.
	passing bool
}

func (r *report) fail(key, format string, args ...any) {
	p := Problem{key, fmt.Sprintf(format, args...)}
	r.problems = append(r.problems, p)
	r.fatal = r.fatal || len(r.about) == 0 && !r.passing
	for _, target := range r.about {
		if !r.passing {
			r.addFaults(target, p.Error())
		}
	}
}

// concerning calls check, whose problems concern these targets alone. Within
// another such call the outer one counts.
func (r *report) concerning(check func(), keys ...targets.Key) {
	if len(r.about) == 0 {
		r.about = keys
		defer func() { r.about = nil }()
	}
	check()
}

func (r *report) addFaults(target targets.Key, faults ...string) {
	if len(faults) == 0 {
		return
	}
	if r.faults == nil {
		r.faults = map[targets.Key][]string{}
	}
	r.faults[target] = append(r.faults[target], faults...)
}

// takeFaults returns the problems of a target. Those that nobody takes concern
// the process.
func (r *report) takeFaults(target targets.Key) []string {
	faults := r.faults[target]
	delete(r.faults, target)
	return faults
}

// isolated reports whether all problems concern single targets.
func (r *report) isolated() bool { return !r.fatal && len(r.faults) == 0 }

// itemKey stands for an item of a list in the configuration file until its name
// is known.
func itemKey(list string, i int) targets.Key { return targets.Key(fmt.Sprintf("%s[%d]", list, i)) }

func (r *report) warn(key, format string, args ...any) {
	r.warnings = append(r.warnings, Problem{key, fmt.Sprintf(format, args...)})
}

// failAll reports each of the errors that err joins.
func (r *report) failAll(key string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.failAll(key, e)
		}
		return
	}
	r.fail(key, "%v", err)
}
