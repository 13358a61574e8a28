package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/tool"
)

// newToolCommand makes a command with the common flags for reading a configuration. do
// runs after the flags are checked. Errors end the process with the status.
func newToolCommand(t *tool.Tool, use, short, long string, status int, do func(*cobra.Command, []string) error) *cobra.Command {
	var format *outputFlag
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error { return asStatus(status, checkUsage(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Sources.AnnotationsNamed, t.TemplatesNamed = cmd.Flags().Changed("annotations"), cmd.Flags().Changed("templates-dir")
			t.Output, t.In, t.Out, t.Err = format.Format, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return asStatus(status, t.Report(do(cmd, args)))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asStatus(status, flagError(cmd, err)) })
	t.Sources.Getenv = os.Getenv
	flags := cmd.Flags()
	flags.StringVar(&t.Sources.Annotations.Name, "annotations", config.DefaultAnnotations, "the file of the Pod's annotations, as the Downward API writes it")
	flags.StringVar(&t.Sources.ConfigFile.Name, "config", "", "the YAML configuration file")
	flags.StringVar(&t.Sources.SecretsDir, "secrets-dir", config.DefaultSecretsDir, "the folder below which secret files are")
	flags.StringVar(&t.Sources.TemplatesDir, "templates-dir", config.DefaultTemplatesDir, "the folder of template files, GROUP.tpl")
	flags.StringVar(&t.Sources.StatusDir, "status-dir", config.DefaultStatusDir, "the folder of sentinel files")
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// addManifestFlags adds the flags of the commands that read manifests.
func addManifestFlags(cmd *cobra.Command, t *tool.Tool) {
	cmd.Flags().StringArrayVarP(&t.Manifests, "file", "f", nil, "a manifest of YAML documents, or a folder of manifests; - for standard input; repeatable")
	cmd.Flags().StringVar(&t.Container, "container", "", "the provider's container (default: that with secrets-provider or syncer in its image name)")
	cmd.Flags().StringVar(&t.Inject, "inject", "", "a file of the chart's values with label and sidecar (default: the label conjur.org/inject)")
}

// statusError is an error that ends the process with a status other than 1.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// asStatus makes a tool's error end the process with the status. A difference ends it
// with 1, as in diff(1).
func asStatus(status int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tool.ErrDiffers):
		return errLogged
	case errors.Is(err, tool.ErrReported):
		err = errLogged
	}
	return &statusError{status, err}
}

// exitStatus is the exit status for an error.
func exitStatus(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 1
}
