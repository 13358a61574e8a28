package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/tool"
)

func newNodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Look after the secrets that nodes have of their own",
		Long: `A node may have a variable of its own in the place of one that all nodes have:
node/n1/apps/key for apps/key. Such variables are best brought in small batches:

  syncer node policy --node n1,n2 apps/key | conjur policy load -b root -f -
  syncer set -f values.yaml          # node/n1/apps/key: …
  syncer node list

See "Secrets of a node" in docs/configuration.md.`,
	}
	cmd.AddCommand(newNodeListCommand(), newNodePolicyCommand())
	return cmd
}

const baseUsage = "the path below which the variables are, as nodeSecretsBase"

func newNodeListCommand() *cobra.Command {
	var base string
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List which nodes have which variables of their own",
		Long: `Lists the variables of nodes that the identity can see, by name only, and whether
they have a value. How Conjur is reached is read from the environment
(CONJUR_APPLIANCE_URL, CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConjur(func(client *conjur.Client) error {
				all, err := tool.Overrides(cmd.Context(), client, base)
				if err != nil {
					return err
				}
				t := tool.Tool{JSON: output.isJSON(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
				return t.PrintOverrides(all)
			})
		},
	}
	cmd.Flags().StringVar(&base, "base", "", baseUsage)
	output = addOutputFlag(cmd, "text", "json")
	return cmd
}

func newNodePolicyCommand() *cobra.Command {
	var p tool.NodePolicy
	cmd := &cobra.Command{
		Use:   "policy --node NODE[,NODE...] ID...",
		Short: "Print the policy that gives nodes variables of their own, or takes them away",
		Long: `Prints the policy that declares a variable of its own for each of the nodes in
the place of each of the variables, and lets the node's host read it; or, with
--remove, deletes these variables. It is for the root of the account.`,
		Args: cobra.MinimumNArgs(1),
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
	cmd.Flags().StringVar(&p.Host, "host", "nodes/NODE", "the host that reads as a node, with NODE in the place of its name")
	cmd.Flags().StringVar(&p.Base, "base", "", baseUsage)
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "delete the variables")
	_ = cmd.MarkFlagRequired("node")
	return cmd
}

// addNodeFlag adds the flag of the commands that look at what a node gets.
func addNodeFlag(cmd *cobra.Command, t *tool.Tool) {
	cmd.Flags().StringVar(&t.Sources.Node, "node", "", "the node whose own variables are looked for first (default: $MY_NODE_NAME)")
}
