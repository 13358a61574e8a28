package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/tool"
)

func newPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Load policies into Conjur"}
	cmd.AddCommand(newPolicyLoadCommand())
	return cmd
}

func newPolicyLoadCommand() *cobra.Command {
	var replace, update, dryRun bool
	var format *outputFlag
	cmd := &cobra.Command{
		Use:   "load BRANCH FILE",
		Short: "Load a policy file into a branch, such as root",
		Long: `Loads a policy, whole or not at all. Without a flag, it only adds. The connection to Conjur comes from the environment (CONJUR_APPLIANCE_URL,
CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …). FILE - is standard input.

The output names the new users and hosts with their API keys. Conjur shows a key only
once.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			change := conjur.PolicyChange{Branch: args[0], Method: http.MethodPost, DryRun: dryRun}
			switch {
			case replace && update:
				return errors.New("--replace and --update exclude each other; use one of them")
			case replace:
				change.Method = http.MethodPut
			case update:
				change.Method = http.MethodPatch
			}
			var err error
			if change.Text, err = tool.ReadInput(args[1], cmd.InOrStdin()); err != nil {
				return err
			}
			return withConjur(func(client *conjur.Client) error {
				answer, err := client.LoadPolicy(cmd.Context(), change)
				if refused, ok := errors.AsType[*conjur.PolicyError](err); ok {
					return fmt.Errorf("%s is not a valid policy, nothing was loaded: %s", args[1], terminal.Plain(refused.Error()))
				}
				if err != nil {
					return err
				}
				var content any
				if err := json.Unmarshal(answer, &content); err != nil {
					return err
				}
				return format.Write(cmd.OutOrStdout(), content)
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the branch: delete what the policy does not declare, with its values")
	cmd.Flags().BoolVar(&update, "update", false, "also delete and change what the policy says")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check the policy and show its effect, without loading it")
	format = addOutputFlag(cmd, output.JSON)
	return cmd
}
