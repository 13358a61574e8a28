package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/tool"
)

func newSetCommand() *cobra.Command {
	var file string
	var nonAtomic bool
	cmd := &cobra.Command{
		Use:   "set -f values.yaml",
		Short: "Set several variables in Conjur, all of them or none",
		Long: `Reads a YAML mapping of variable id to value, a text or {base64: …}, and sets
all values in one transaction. How Conjur is reached is read from the
environment (CONJUR_APPLIANCE_URL, CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …).

The genuine server cannot set several values at once. With
--allow-non-atomic they are then set one by one, and when one fails the earlier
values are put back as far as that is possible.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setValues(cmd.Context(), file, nonAtomic, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the YAML file with the values")
	cmd.Flags().BoolVar(&nonAtomic, "allow-non-atomic", false, "set one by one where the server cannot set all at once")
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// setValues sets what the file says.
func setValues(ctx context.Context, file string, nonAtomic bool, out io.Writer) error {
	values, err := tool.ReadValues(file)
	if err == nil && len(values) == 0 {
		err = fmt.Errorf("%s: no values in it", file)
	}
	if err != nil {
		return err
	}
	connection, _, err := config.LoadConnection(os.Getenv)
	if err != nil {
		return err
	}
	client, err := conjur.New(pipeline.ClientConfig(connection, version(), zap.NewNop(), inject.NewInbox(connection.InboxPath)))
	if err != nil {
		return err
	}
	defer client.Close()
	return tool.Set(ctx, client, values, nonAtomic, out)
}
