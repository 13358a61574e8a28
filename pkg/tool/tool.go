// Package tool looks at configurations and manifests without asking Conjur:
// it validates, explains, renders, compares and migrates. What would be written
// is worked out by the Sync that also writes it.
package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/safefile"
)

// Errors of a Tool's methods.
var (
	// ErrReported says that what is wrong has been written already.
	ErrReported = errors.New("failed; see standard error")
	// ErrDiffers says that Diff found, and wrote, a difference.
	ErrDiffers = errors.New("there are differences")
)

// Tool is what to look at, and where to write about it.
type Tool struct {
	// Sources are where the configuration is read from. AnnotationsNamed and
	// TemplatesNamed report that somebody named that file and that folder: a
	// file that is not there is a slip then, and the folder comes before what
	// a manifest mounts.
	Sources                          config.Sources
	AnnotationsNamed, TemplatesNamed bool
	// Manifests are files of YAML documents, and folders of such; "-" is standard
	// input.
	Manifests []string
	// Container is the name of the provider's container in its workloads; "":
	// the one whose image's name says so.
	Container string
	// Values is the file of values to render with; "-": standard input.
	Values string
	// JSON is output for programs.
	JSON     bool
	In       io.Reader
	Out, Err io.Writer
}

// load reads the configuration that Sources name, without asking for a
// connection to Conjur. Its warnings, and if it is not valid its problems, are
// written.
func (t *Tool) load() (*config.Config, error) {
	src := t.Sources
	src.Assume = config.Assumptions{Connection: true, Namespace: true, Files: true, Node: true}
	cfg, v := t.loadFrom(src)
	return cfg, t.write(v)
}

// loadFrom reads a configuration. An annotations file that was named must be
// there: in a Pod, one that is not means no annotations.
func (t *Tool) loadFrom(src config.Sources) (*config.Config, config.Validation) {
	named := src.Annotations.Name
	src = src.Read()
	if t.AnnotationsNamed && (named == "" || errors.Is(src.Annotations.Err, fs.ErrNotExist)) {
		return nil, config.NewValidation(nil, invalid(cmp.Or(named, "--annotations"), "there is no such file"))
	}
	cfg, warnings, err := config.Load(src)
	return cfg, config.NewValidation(warnings, err)
}

// invalid returns the error of a configuration with one problem.
func invalid(key, message string) error {
	return &config.InvalidError{Problems: []config.Problem{{Key: key, Message: message}}}
}

// maxInput bounds a manifest or a file of values, so that one without an end,
// such as a pipe from the wrong command, is refused before the memory is full.
const maxInput = 64 << 20

// read reads a whole file, "-" being standard input, which in is. It may be a pipe.
func read(path string, in io.Reader) ([]byte, error) {
	if path == "-" {
		return safefile.ReadAll(in, path, maxInput)
	}
	return safefile.ReadInput(path, maxInput)
}

// inputName is what an input is called in a problem.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// write writes each problem and warning on a line of its own. The error is
// ErrReported when there is a problem.
func (t *Tool) write(v config.Validation) error {
	for _, p := range v.Errors {
		t.line("error", p)
	}
	for _, p := range v.Warnings {
		t.line("warning", p)
	}
	if len(v.Errors) > 0 {
		return ErrReported
	}
	return nil
}

func (t *Tool) line(kind string, about error) {
	fmt.Fprintf(t.Err, "%s: %s\n", kind, strings.ReplaceAll(strings.TrimSpace(about.Error()), "\n", "; "))
}

// Report writes errors that are joined each on a line of its own, and returns
// ErrReported in their place. Any other error it returns as it is.
func (t *Tool) Report(err error) error {
	each := eachError(err)
	if len(each) < 2 {
		return err
	}
	for _, e := range each {
		t.line("error", e)
	}
	return ErrReported
}

// eachError returns the errors that err joins.
func eachError(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, eachError(e)...)
	}
	return all
}

// about says of each error that err joins what it is about.
func about(what string, err error) error {
	var all []error
	for _, e := range eachError(err) {
		all = append(all, fmt.Errorf("%s: %w", what, e))
	}
	return errors.Join(all...)
}

// problem takes apart a message that begins with a place in the thing named
// who, and a colon.
func problem(who, message string) config.Problem {
	key, rest, _ := strings.Cut(message, ": ")
	return config.Problem{Key: who + ": " + key, Message: rest}
}
