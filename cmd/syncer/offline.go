package main

import (
	"errors"
	"os"
	"slices"
	"strings"

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

func newConfigCommand() *cobra.Command {
	var t tool.Tool
	return newToolCommand(&t, "config", "Print the effective configuration", `Prints the effective configuration without secrets, from annotations,
configuration file, environment and defaults. The output is a configuration file,
without the settings that only the environment can have.

The connection to Conjur is optional; see validate. Warnings go to standard
error. If the configuration is invalid, nothing is printed.`, 1,
		func(*cobra.Command, []string) error { return t.Config() })
}

func newValidateCommand() *cobra.Command {
	var t tool.Tool
	var connection, strict bool
	cmd := newToolCommand(&t, "validate", "Check the configuration and list every problem at once", `Checks annotations, environment and configuration file like run, and lists every
problem. With -f, it checks every workload in a manifest instead, and the conjur-map
and the groups of every Secret in the manifest.

If a variable whose name begins with CONJUR_ is set, the connection (Conjur's
address, account and identity) and MY_POD_NAMESPACE are checked too. --connection
always checks the connection.

With -f, the environment is that of the provider's container. Values of Secrets and
ConfigMaps outside the manifest count as valid, and files of the Pod are not
checked. A Secret must have a map or a group if a workload lists it, or if it lacks
the label that selects Secrets.

With --values, a file as for render, a warning names each node-specific secret
whose general variable is not in the file.

Problems go to standard error, one per line. With --output json, standard output is
the object {"errors": [...], "warnings": [...]}, each item with "key" and "message".

Exit status: 0 if the configuration is valid, 1 if there are problems.`, 1,
		func(*cobra.Command, []string) error { return t.Validate(connection, strict) })
	cmd.Flags().BoolVar(&connection, "connection", false, "check the connection to Conjur even if no variable CONJUR_… is set")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 if there are warnings")
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	addValuesFlag(cmd, &t)
	return cmd
}

func newRenderCommand() *cobra.Command {
	var t tool.Tool
	var group, out string
	cmd := newToolCommand(&t, "render", "Render groups and Secrets with values from a file, without a server", `Renders the output of run with values from a file: a YAML or JSON mapping of variable
id to a text or to {base64: …}. The result is:
- with --group, the file of one group on standard output, byte for byte
- with --out, the files of all groups, below a folder
- with -f and without both, the manifest's Secrets on standard output as YAML,
  with the data from their conjur-map and their groups

With -f, the groups are those of the workload in a manifest, and ConfigMaps with
templates come from it too. The wildcard * selects the variables that have a value.
Like run, it omits variables that the format does not support.

With --output json, standard output is {"targets": [...]}, each with "key", "path",
"mode" and "format". With --group there are also "parts", each with its "name" and its
content in "base64". For Secrets, standard output is a List.

After an error, nothing is written.`, 1,
		func(cmd *cobra.Command, _ []string) error { return t.Render(cmd.Context(), group, out) })
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	addValuesFlag(cmd, &t)
	cmd.Flags().StringVar(&group, "group", "", "the group whose file is printed")
	_ = cmd.RegisterFlagCompletionFunc("group", groupsOf(&t).complete)
	cmd.Flags().StringVar(&out, "out", "", "the folder below which all files are written")
	return cmd
}

func newDiffCommand() *cobra.Command {
	var t tool.Tool
	var cluster tool.Cluster
	cmd := newToolCommand(&t, "diff [SECRET...]", "Compare files and Secrets with the content that they should have", `Renders with values from a file, like render, and compares the result with the files
below --secrets-dir, and with the Kubernetes Secrets in the cluster. The output
names groups, aliases and data keys, and never a value.

The compared Secrets are:
- the Secrets of the configuration, if its destination is k8s_secrets
- the Secrets that you name, as NAME or NAMESPACE/NAME, by their own definition
- the Secrets of the manifests that -f names

The command needs the verb get for Secrets, and for ConfigMaps with templates.

The state "owner" of a Secret means that its data are correct, but that another
tool owns some of them. "syncer run" takes them over.

Exit status, like diff(1): 0 if nothing differs, 1 if something does, 2 after an
error.`, 2,
		func(cmd *cobra.Command, args []string) error { return t.Diff(cmd.Context(), args, cluster) })
	cmd.ValidArgsFunction = secretsOf(&t).complete
	flags := cmd.Flags()
	addNodeFlag(cmd, &t)
	addValuesFlag(cmd, &t)
	flags.StringArrayVarP(&t.Manifests, "file", "f", nil, "a manifest of YAML documents, or a folder of manifests; - for standard input; repeatable")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig file for access to the cluster")
	flags.StringVar(&cluster.Namespace, "namespace", "", "the namespace of Secrets whose name has none (default: the namespace of the kubeconfig's context, or of the Pod)")
	return cmd
}

func newExplainCommand() *cobra.Command {
	var t tool.Tool
	cmd := newToolCommand(&t, "explain TARGET", "Show the variables, template, place and triggers of a target", `Shows everything about one target:
- a file, by its group or its key: "db" or "file/db"
- a Kubernetes Secret of the configuration, by its name, with or without its
  namespace, or by its key: "db", "shop/db" or "secret/shop/db"
- with -f, a Secret of the manifest, or else a target of the manifest's workload

The output lists errors in the definition of a Secret as "faults".

With --node, the output lists the node-specific variables beside the general
variables that they replace. With --values as well, a file as for render, it shows
which of the two each entry reads.`, 1,
		func(_ *cobra.Command, args []string) error { return t.Explain(args[0]) })
	cmd.ValidArgsFunction = completer(targetsOf(&t).first).complete
	addManifestFlags(cmd, &t)
	addNodeFlag(cmd, &t)
	addValuesFlag(cmd, &t)
	return cmd
}

func newMigrateCommand() *cobra.Command {
	var t tool.Tool
	var image string
	var inPlace bool
	cmd := newToolCommand(&t, "migrate", "Replace the Secrets Provider by Syncer in a manifest", `Replaces the image of the Secrets Provider by Syncer's in the manifest, and writes it
to standard output. Standard error shows which settings Syncer reads differently,
which rights are missing, and what you must change by hand.
With --in-place, the files themselves change, and standard output lists them.

With --inject, workloads with the label of the chart's admission policy also get the
sidecar, for clusters without that policy. The file contains the chart's values. Only
lines are inserted.

Exit status: 0, or 1 if something in the manifest cannot work, or still has the image of
the Secrets Provider, as a kustomization may. Then no manifest is written. With --output json, standard output is an object with the manifest, the notes
and the problems.`, 1,
		func(*cobra.Command, []string) error { return t.Migrate(image, inPlace) })
	cmd.Flags().StringVar(&image, "image", defaultImage, "Syncer's image")
	cmd.Flags().BoolVar(&inPlace, "in-place", false, "change the files instead of writing the manifest")
	addManifestFlags(cmd, &t)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// outputFlag is a flag for the format of a command's output.
type outputFlag struct{ output.Format }

// addOutputFlag adds the flag --output to a command that prints data.
func addOutputFlag(cmd *cobra.Command, format output.Format) *outputFlag {
	o := &outputFlag{format}
	cmd.Flags().VarP(o, "output", "o", "the output format: "+formats())
	return o
}

// formats lists the formats of the output.
func formats() string {
	names := make([]string, len(output.Formats()))
	for i, f := range output.Formats() {
		names[i] = string(f)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// String, Set and Type implement pflag.Value.
func (o *outputFlag) String() string { return string(o.Format) }

func (o *outputFlag) Set(format string) error {
	if !slices.Contains(output.Formats(), output.Format(format)) {
		return errors.New("use " + formats())
	}
	o.Format = output.Format(format)
	return nil
}

func (o *outputFlag) Type() string { return "format" }

// addValuesFlag adds --values.
func addValuesFlag(cmd *cobra.Command, t *tool.Tool) {
	cmd.Flags().StringVar(&t.Values, "values", "", "the YAML or JSON file of values; - for standard input")
}
