package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
)

// toolFlags are the flags of the commands that look at a configuration, and
// ask no server.
type toolFlags struct {
	sources  config.Sources
	output   string
	pod      podFlags
	explicit bool // the annotations file was named
}

// Values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

// newToolCommand makes a command with the flags that all of these share; do
// runs when they are checked. Errors of the command line give status.
func newToolCommand(f *toolFlags, use, short, long string, status int, do func(*cobra.Command, []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.explicit = cmd.Flags().Changed("annotations")
			f.pod.templates = cmd.Flags().Changed("templates-dir")
			if f.output != outputText && f.output != outputJSON {
				return &statusError{status, fmt.Errorf("--output %q is not a form; use text or json", f.output)}
			}
			return tell(cmd.ErrOrStderr(), do(cmd, args))
		},
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch want := strings.Count(use, " "); {
		case strings.HasSuffix(use, "...]"): // any number
		case len(args) < want:
			return &statusError{status, fmt.Errorf("an argument is missing: syncer %s", use)}
		case len(args) > want:
			return &statusError{status, fmt.Errorf("the argument %q is not for syncer %s; files are named by flags, see --help", args[want], use)}
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &statusError{status, err} })
	f.sources.Getenv = os.Getenv
	flags := cmd.Flags()
	flags.StringVar(&f.sources.Annotations, "annotations", config.DefaultAnnotations, "the Pod's annotations, a file as the Downward API writes it")
	flags.StringVar(&f.sources.ConfigFile, "config", "", "a YAML configuration file")
	flags.StringVar(&f.sources.SecretsDir, "secrets-dir", config.DefaultSecretsDir, "the folder below which secret files are")
	flags.StringVar(&f.sources.TemplatesDir, "templates-dir", config.DefaultTemplatesDir, "the folder with template files, GROUP.tpl")
	flags.StringVar(&f.sources.StatusDir, "status-dir", config.DefaultStatusDir, "the folder for sentinel files")
	flags.StringVar(&f.output, "output", outputText, "the form of the output: text or json")
	return cmd
}

// load reads the configuration that the flags name, without asking for a
// connection to Conjur. Its warnings, and if it is not valid its problems, go
// to standard error.
func (f *toolFlags) load(cmd *cobra.Command) (*config.Config, error) {
	if problem, missing := f.missingAnnotations(); missing {
		return nil, printProblems(cmd.ErrOrStderr(), config.Validation{Errors: []config.Problem{problem}})
	}
	src := f.sources
	src.Assume = config.Assumptions{Connection: true, Namespace: true, Files: true}
	cfg, warnings, err := config.Load(src)
	return cfg, printProblems(cmd.ErrOrStderr(), config.NewValidation(warnings, err))
}

// missingAnnotations reports an annotations file that was named and is not
// there: here it is a slip, in a Pod it means no annotations.
func (f *toolFlags) missingAnnotations() (config.Problem, bool) {
	_, err := os.Stat(f.sources.Annotations)
	return config.Problem{Key: cmp.Or(f.sources.Annotations, "--annotations"), Message: "there is no such file"},
		f.explicit && errors.Is(err, fs.ErrNotExist)
}

// maxInput bounds a manifest or a file of values, so that one without an end,
// such as a pipe from the wrong command, is refused before the memory is full.
const maxInput = 64 << 20

// readInput reads a whole file, "-" being standard input. It may be a pipe.
func readInput(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d MiB", maxInput>>20)}
	}
	return data, err
}

// inputName is what an input is called in a problem.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// printProblems writes each problem and warning on a line of its own. The
// error is errLogged when there is a problem.
func printProblems(w io.Writer, v config.Validation) error {
	for _, p := range v.Errors {
		fmt.Fprintln(w, "error:", oneLine(p.Error()))
	}
	for _, p := range v.Warnings {
		fmt.Fprintln(w, "warning:", oneLine(p.Error()))
	}
	if len(v.Errors) > 0 {
		return errLogged
	}
	return nil
}

// tell writes errors that are joined each on a line of its own, and gives an
// error of the same status. A single one is left to whoever ends the process.
func tell(w io.Writer, err error) error {
	each := eachError(err)
	var s *statusError
	if errors.As(err, &s) {
		each = eachError(s.err)
	}
	if len(each) < 2 {
		return err
	}
	for _, e := range each {
		fmt.Fprintln(w, "error:", oneLine(e.Error()))
	}
	if s != nil {
		return &statusError{s.status, errLogged}
	}
	return errLogged
}

// eachError gives the errors that err joins.
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

func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
}

// printJSON writes a value as JSON that people can read too.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// statusError is an error that ends the process with another status than 1.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// exitStatus is the status that an error ends the process with.
func exitStatus(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 1
}
