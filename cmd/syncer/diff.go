package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newDiffCommand() *cobra.Command {
	var t tool.Tool
	var cluster tool.Cluster
	cmd := newToolCommand(&t, "diff [SECRET...]", "Say what is not as it would be rendered, on disk or in the cluster", `Renders with values from a file, as render does, and compares with what is
there: files with those below --secrets-dir, and Kubernetes Secrets with those
in the cluster. It names groups, aliases and data keys, and never a value.

Secrets are those of the configuration, if its destination is k8s_secrets; or
those named, as NAME or NAMESPACE/NAME, with what they themselves define; or
those of manifests named by -f. Of the API server, which is found by
--kubeconfig, $KUBECONFIG or from inside a Pod, the verb get is needed, for
Secrets and for the ConfigMaps that templates are in.

The state "owner" of a Secret says that its data are right, but that another
tool owns some of them, so that run would take them over.

Exit status, as that of diff(1): 0 if nothing differs, 1 if something does, 2
if anything is wrong.`, 2,
		func(cmd *cobra.Command, args []string) error { return t.Diff(cmd.Context(), args, cluster) })
	flags := cmd.Flags()
	addNodeFlag(cmd, &t)
	flags.StringVar(&t.Values, "values", "", "the file of values; - for standard input")
	flags.StringArrayVarP(&t.Manifests, "file", "f", nil, "a manifest of one or several YAML documents, or a folder of them, given once or more, whose Secrets are compared with those in the cluster; - for standard input")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig file that says where the cluster is")
	flags.StringVar(&cluster.Namespace, "namespace", "", "the namespace of Secrets that are named without one (default: that of the kubeconfig's context, or the Pod's)")
	return cmd
}
