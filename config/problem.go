package config

import (
	"fmt"
	"strings"
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
}

func (r *report) fail(key, format string, args ...any) {
	r.problems = append(r.problems, Problem{key, fmt.Sprintf(format, args...)})
}

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
