package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/tool"
)

func newDiffCommand() *cobra.Command {
	var t tool.Tool
	var cluster tool.Cluster
	cmd := newToolCommand(&t, "diff [SECRET...]", "Tell what is not as it would be rendered, on disk or in the cluster", `json:"key"`, 2,
		func(cmd *cobra.Command, args []string) error { return t.Diff(cmd.Context(), args, cluster) })
	flags := cmd.Flags()
	addNodeFlag(cmd, &t)
	flags.StringVar(&t.Values, "values", "", "the file of values; - for standard input")
	flags.StringArrayVarP(&t.Manifests, "file", "f", nil, "a manifest of one or several YAML documents, or a folder of them, given once or more, whose Secrets are compared with those in the cluster; - for standard input")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig file that says where the cluster is")
	flags.StringVar(&cluster.Namespace, "namespace", "", "the namespace of Secrets that are named without one (default: that of the kubeconfig's context, or the Pod's)")
	return cmd
}
