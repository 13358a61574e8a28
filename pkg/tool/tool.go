// Package tool inspects configurations and manifests without requests to Conjur: it
// validates, explains, renders, compares and migrates. It works out the output with the
// same Sync that also writes it.
package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// Errors of a Tool's methods.
var (
	// ErrReported means that the problems were already written.
	ErrReported = errors.New("failed; see standard error")
	// ErrDiffers means that Diff found and wrote a difference.
	ErrDiffers = errors.New("there are differences")
)

// Tool contains the inputs to inspect, and the output.
type Tool struct {
	// Sources are the inputs of the configuration. If the user named the annotations, a
	// missing file is an error. TemplatesNamed reports that the user named that folder. Then
	// it takes precedence over the manifest's mounts.
	Sources        config.Sources
	TemplatesNamed bool
	// Manifests are files of YAML documents, and folders of these files; "-" is standard
	// input.
	Manifests []string
	// Container is the name of the provider's container in its workloads. If empty, the
	// image's name identifies it.
	Container string
	// Values is the file of values for rendering; "-" is standard input.
	Values string
	// Inject is a file of the chart's values. Workloads with their label have the sidecar
	// that they describe; Migrate writes it. If empty, the chart's default label counts, the
	// connection is not known, and Migrate writes none.
	Inject string
	// Output is the format of the output.
	Output   output.Format
	In       io.Reader
	Out, Err io.Writer
}

// load reads the configuration of Sources, and does not require a connection to Conjur.
// It writes the warnings and, if the configuration is invalid, the problems.
func (t *Tool) load() (*config.Config, error) {
	src := t.Sources
	src.Assume = config.Assumptions{Connection: true, Namespace: true, Files: true, Node: true}
	cfg, v := t.loadFrom(src)
	return cfg, t.write(v)
}

// loadFrom reads a configuration. A named annotations file must exist. In a Pod, a
// missing file means no annotations. If there is one that the user did not name, a line
// says so.
func (t *Tool) loadFrom(src config.Sources) (*config.Config, config.Validation) {
	src = src.Read()
	file := src.Annotations
	missing := file.Name == "" || errors.Is(file.Err, fs.ErrNotExist)
	switch {
	case src.AnnotationsNamed && missing:
		return nil, config.NewValidation(nil, invalid(cmp.Or(file.Name, "--annotations"), "there is no such file"))
	case !src.AnnotationsNamed && !missing && !src.IgnoresAnnotations():
		fmt.Fprintf(t.Err, "note: reading the annotations in %s; --annotations names another file\n", file.Name)
	}
	cfg, warnings, err := config.Load(src)
	return cfg, config.NewValidation(append(warnings, cfg.Hints()...), err)
}

// invalid returns the error of a configuration with one problem.
func invalid(key, message string) error {
	return &config.InvalidError{Problems: []config.Problem{{Key: key, Message: message}}}
}

// maxInput limits the size of a manifest or a file of values. An endless input, such as a
// pipe from the wrong command, is refused before the memory is full.
const maxInput = 64 << 20

// ReadInput reads a whole file, which may be a pipe. The path "-" is standard input, which is
// in.
func ReadInput(path string, in io.Reader) ([]byte, error) {
	if path == "-" {
		return safefile.ReadAll(in, path, maxInput)
	}
	return safefile.ReadInput(path, maxInput)
}

// inputName is the name of an input in a problem.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// write writes each problem and warning on a separate line. The error is ErrReported if
// there is a problem.
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

// Report writes joined errors, each on a separate line, and returns ErrReported instead.
// It returns any other error unchanged.
func (t *Tool) Report(err error) error {
	each := joined.Errors(err)
	if len(each) < 2 {
		return err
	}
	for _, e := range each {
		t.line("error", e)
	}
	return ErrReported
}

// about adds the subject what to each error that err joins.
func about(what string, err error) error {
	var all []error
	for _, e := range joined.Errors(err) {
		all = append(all, fmt.Errorf("%s: %w", what, e))
	}
	return errors.Join(all...)
}

// problem returns a fault of the object named who.
func problem(who string, f targets.Fault) config.Problem {
	return config.Problem{Key: who + ": " + f.Place, Message: f.Why}
}

// Names returns the names of the groups and of the Secrets in the configuration, or in
// the manifest, for the completion of a command line. It writes nothing.
func (t Tool) Names() (groups, secrets []string) {
	t.In, t.Out, t.Err = strings.NewReader(""), io.Discard, io.Discard
	if cfg, _, err := t.loadGroups(); err == nil && cfg != nil {
		for _, target := range cfg.Targets {
			groups = append(groups, target.Group)
		}
		for _, def := range cfg.Kubernetes.Definitions {
			secrets = append(secrets, def.Namespace+"/"+def.Name)
		}
	}
	if len(t.Manifests) == 0 {
		return groups, secrets
	}
	if found, _, err := t.secrets(); err == nil {
		for _, s := range found {
			if s.target != nil {
				secrets = append(secrets, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))
			}
		}
	}
	return groups, secrets
}
