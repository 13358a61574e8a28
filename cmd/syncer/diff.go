package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

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
	flags.StringVar(&t.Values, "values", "", "the YAML or JSON file of values; - for standard input")
	flags.StringArrayVarP(&t.Manifests, "file", "f", nil, "a manifest of YAML documents, or a folder of manifests; - for standard input; repeatable")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig file for access to the cluster")
	flags.StringVar(&cluster.Namespace, "namespace", "", "the namespace of Secrets whose name has none (default: the namespace of the kubeconfig's context, or of the Pod)")
	return cmd
}
