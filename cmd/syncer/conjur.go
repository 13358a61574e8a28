package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/tool"
)

func newSetCommand() *cobra.Command {
	var file string
	var nonAtomic bool
	cmd := &cobra.Command{
		Use:   "set ID | set -f values.yaml",
		Short: "Set variables in Conjur, all of them or none",
		Long: `Sets one variable to the bytes of standard input. With -f, it reads a YAML or JSON
mapping of variable id to value, a text or {base64: …}. It sets all values in one transaction.
The connection to Conjur comes from the environment (CONJUR_APPLIANCE_URL,
CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …).

The genuine server cannot set several values at once. With --allow-non-atomic, the
command then sets them one by one. After an error, it restores the earlier values as
far as possible.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && file == "":
				return errors.New("name one variable, whose value is standard input, or a file of values with -f")
			case len(args) == 1 && file != "":
				return errors.New("a variable and -f both set a value; use one of them")
			case len(args) == 1:
				return setValue(cmd, args[0])
			}
			return setValues(cmd, file, nonAtomic)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the YAML or JSON file of the values; - for standard input")
	cmd.Flags().BoolVar(&nonAtomic, "allow-non-atomic", false, "set values one by one if the server cannot set all at once")
	return cmd
}

// setValues sets the values in the file.
func setValues(cmd *cobra.Command, file string, nonAtomic bool) error {
	values, err := tool.ReadValues(file, cmd.InOrStdin())
	if err == nil && len(values) == 0 {
		err = fmt.Errorf("the file %s contains no values; write ID: VALUE, one a line", file)
	}
	if err != nil {
		return err
	}
	return withConjur(func(client *conjur.Client) error {
		return variables.Set(cmd.Context(), client, values, nonAtomic, cmd.OutOrStdout())
	})
}

// setValue sets a variable to the content of standard input.
func setValue(cmd *cobra.Command, id string) error {
	return withConjur(func(client *conjur.Client) error {
		return variables.SetOne(cmd.Context(), client, id, cmd.InOrStdin(), cmd.ErrOrStderr())
	})
}

// withConjur calls do with a client of the Conjur that the environment names.
func withConjur(do func(*conjur.Client) error) error {
	connection, _, err := config.LoadConnection(os.Getenv)
	if err != nil {
		return err
	}
	client, err := connect.Conjur(connection, connect.Options{Version: version()})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

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
