package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/tool"
)

func newNodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Manage node-specific variables",
		Long: `A node-specific variable replaces the general variable on one node:
node/n1/apps/key replaces apps/key. Add such variables in small batches:

    syncer node policy --node n1,n2 apps/key | syncer policy load root -
    syncer set -f values.yaml          # node/n1/apps/key: …
    syncer node list

See "Secrets of a node" in docs/configuration.md.`,
	}
	cmd.AddCommand(newNodeListCommand(), newNodePolicyCommand())
	return cmd
}

const baseUsage = "the path below which the variables are, like nodeSecretsBase"

func newNodeListCommand() *cobra.Command {
	var base string
	var format *outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the node-specific variables",
		Long: `Lists the node-specific variables that the identity can see, by name only, and
whether they have a value. The connection to Conjur comes from the environment
(CONJUR_APPLIANCE_URL, CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConjur(func(client *conjur.Client) error {
				all, err := tool.Overrides(cmd.Context(), client, base)
				if err != nil {
					return err
				}
				t := tool.Tool{Output: format.Format, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
				return t.PrintOverrides(all)
			})
		},
	}
	cmd.Flags().StringVar(&base, "base", "", baseUsage)
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

func newNodePolicyCommand() *cobra.Command {
	var p tool.NodePolicy
	cmd := &cobra.Command{
		Use:   "policy --node NODE[,NODE...] ID...",
		Short: "Print the policy that adds or removes node-specific variables",
		Long: `Prints a policy for the root of the account. It declares a node-specific variable for
each node and variable, and lets the node's host read it. With --remove, it deletes
them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.IDs = args
			policy, err := p.YAML()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(policy)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&p.Nodes, "node", nil, "the nodes")
	cmd.Flags().StringVar(&p.Host, "host", "nodes/NODE", "the host of a node; NODE stands for the node's name")
	_ = cmd.RegisterFlagCompletionFunc("host", words("nodes/NODE").complete)
	cmd.Flags().StringVar(&p.Base, "base", "", baseUsage)
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "delete the variables")
	_ = cmd.MarkFlagRequired("node")
	return cmd
}

// addNodeFlag adds the node flag to commands that inspect a node's secrets.
func addNodeFlag(cmd *cobra.Command, t *tool.Tool) {
	cmd.Flags().StringVar(&t.Sources.Node, "node", "", "the node whose node-specific variables take precedence (default: $MY_NODE_NAME)")
}
