package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
)

func newValidateCommand() *cobra.Command {
	var f toolFlags
	var connection bool
	cmd := newToolCommand(&f, "validate", "Check what was configured, and tell every problem at once", `Checks annotations, environment and configuration file as run does, and tells
all that is wrong; or, with -f, the same of every workload in a manifest, and
the conjur-map and the groups of every Secret in it.

Whether Conjur's address, account and identity are set is checked when a
variable whose name begins with CONJUR_ is set, and with --connection. With
neither, only what is there is checked: the annotations alone, say, and the
Pod's namespace (MY_POD_NAMESPACE) where Kubernetes Secrets are the destination.

With -f the environment is that of the provider's container, and this
process's counts for nothing. What a manifest does not tell, the values of
Secrets and of ConfigMaps that are not in it, is taken to be right, and files
of the Pod are not looked for. A Secret must have a map or a group if a workload
lists it, or if it lacks the label by which it is found otherwise.

Problems go to standard error, a line each; with --output json standard output
is the object {"errors": [...], "warnings": [...]}, each item with "key" and
"message".

Exit status: 0 if nothing is wrong, 1 if something is. Warnings are not wrong.`, 1,
		func(cmd *cobra.Command, _ []string) error {
			return printValidation(cmd, f.output, f.validate(cmd.InOrStdin(), connection))
		})
	cmd.Flags().BoolVar(&connection, "connection", false, "check that the connection to Conjur is set, whatever the environment")
	f.pod.addTo(cmd)
	return cmd
}

// validate checks everything that the flags name.
func (f *toolFlags) validate(stdin io.Reader, connection bool) config.Validation {
	if f.pod.manifest != "" {
		return f.validateManifest(stdin, connection)
	}
	if problem, missing := f.missingAnnotations(); missing {
		return config.NewValidation(nil, &config.InvalidError{Problems: []config.Problem{problem}})
	}
	src := f.sources
	apart := !connection && !slices.ContainsFunc(os.Environ(), isConnection)
	src.Assume = config.Assumptions{Connection: apart, Files: apart}
	_, warnings, err := config.Load(src)
	return config.NewValidation(warnings, err)
}

// isConnection tells whether a variable, as NAME=value, says how Conjur is
// reached.
func isConnection(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "CONJUR_") && value != ""
}

// printValidation gives errLogged when there are problems.
func printValidation(cmd *cobra.Command, output string, v config.Validation) error {
	if output == outputText {
		return printProblems(cmd.ErrOrStderr(), v)
	}
	if err := printJSON(cmd.OutOrStdout(), v); err != nil {
		return err
	}
	if len(v.Errors) > 0 {
		return errLogged
	}
	return nil
}
