package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/secret"
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
	read, err := readValues(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(read) == 0 {
		return fmt.Errorf("%s: no values in it", file)
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

	values := make([]conjur.NewValue, 0, len(read))
	for _, id := range slices.Sorted(maps.Keys(read)) {
		values = append(values, conjur.NewValue{ID: id, Value: secret.New(read[id])})
	}
	err = client.SetAll(ctx, values)
	switch {
	case err == nil:
		fmt.Fprintf(out, "%d values set at once\n", len(values))
		return nil
	case !errors.Is(err, conjur.ErrNotOffered):
		return err
	case !nonAtomic:
		return fmt.Errorf("%w; to set them one by one, add --allow-non-atomic", err)
	}
	return setOneByOne(ctx, client, values, out)
}

// setOneByOne sets the values in turn and, when one fails, puts back the
// earlier values of those that were set.
func setOneByOne(ctx context.Context, client *conjur.Client, values []conjur.NewValue, out io.Writer) error {
	ids := make([]string, len(values))
	for i, v := range values {
		ids[i] = v.ID
	}
	earlier := client.Fetch(ctx, ids)
	for i, v := range values {
		err := client.Set(ctx, v.ID, v.Value)
		if err == nil {
			continue
		}
		touched := values[:i]
		var refused *conjur.StatusError
		if !errors.As(err, &refused) {
			touched = values[:i+1] // it may have been set all the same
		}
		return errors.Join(fmt.Errorf("setting %q failed: %w", v.ID, err), putBack(ctx, client, touched, earlier))
	}
	fmt.Fprintf(out, "%d values set, one by one\n", len(values))
	return nil
}

// putBack restores what it can and tells exactly what happened; nil when there
// was nothing to restore.
func putBack(ctx context.Context, client *conjur.Client, touched []conjur.NewValue, earlier map[string]conjur.Answer) error {
	ctx = context.WithoutCancel(ctx) // also when the user gave up
	var errs []error
	for _, v := range slices.Backward(touched) {
		before := earlier[v.ID]
		if before.Verdict != conjur.Found {
			errs = append(errs, fmt.Errorf("%q keeps its new value: the earlier one could not be read (%w)", v.ID, before.Err))
			continue
		}
		if err := client.Set(ctx, v.ID, before.Value); err != nil {
			errs = append(errs, fmt.Errorf("%q may keep its new value: putting the earlier one back failed: %w", v.ID, err))
			continue
		}
		errs = append(errs, fmt.Errorf("%q has its earlier value again", v.ID))
	}
	return errors.Join(errs...)
}
