package variables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

// Set sets the values, by variable, all of them or none. If the server cannot do
// that and nonAtomic allows it, Set sets them one by one. If one fails, Set restores
// the earlier values as far as possible.
func Set(ctx context.Context, client *conjur.Client, values map[string][]byte, nonAtomic bool, out io.Writer) error {
	all := make([]conjur.NewValue, 0, len(values))
	for _, id := range slices.Sorted(maps.Keys(values)) {
		all = append(all, conjur.NewValue{ID: id, Value: secret.New(values[id])})
	}
	err := client.SetAll(ctx, all)
	switch {
	case err == nil:
		fmt.Fprintf(out, "%s set at once\n", brief.Count(len(all), "value"))
		return nil
	case !errors.Is(err, conjur.ErrNotOffered):
		return err
	case !nonAtomic:
		return fmt.Errorf("%w; to set them one by one, add --allow-non-atomic", err)
	}
	return setOneByOne(ctx, client, all, out)
}

// mostInput bounds a value, as those that Syncer delivers are.
const mostInput = 1 << 20

// SetOne sets a variable to what there is to read, byte for byte. A warning goes
// to say.
func SetOne(ctx context.Context, client *conjur.Client, id string, in io.Reader, say io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(in, mostInput+1))
	value := secret.New(text)
	defer value.Wipe()
	switch {
	case err != nil:
		return fmt.Errorf("reading standard input: %w", err)
	case len(text) == 0:
		return errors.New("standard input is empty; a variable has a value of one byte or more")
	case len(text) > mostInput:
		return fmt.Errorf("standard input has more than %d bytes", mostInput)
	case text[len(text)-1] == '\n':
		fmt.Fprintln(say, "warning: the value ends in a line feed, which belongs to it; printf makes none")
	}
	return client.Set(ctx, id, value)
}

// setOneByOne sets the values in turn and, when one fails, puts back the
// earlier values of those that were set.
func setOneByOne(ctx context.Context, client *conjur.Client, values []conjur.NewValue, out io.Writer) error {
	ids := make([]string, len(values))
	for i, v := range values {
		ids[i] = v.ID
	}
	known, err := New(client, Config{})
	if err != nil {
		return err
	}
	earlier := known.Fetch(ctx, ids, nil)
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
	fmt.Fprintf(out, "%s set, one by one\n", brief.Count(len(values), "value"))
	return nil
}

// putBack restores the earlier values where it can, and returns which it did not
// restore. It returns nil if there was nothing to restore.
func putBack(ctx context.Context, client *conjur.Client, touched []conjur.NewValue, earlier map[string]Answer) error {
	ctx = context.WithoutCancel(ctx) // also when the user gave up
	var errs []error
	for _, v := range slices.Backward(touched) {
		before := earlier[v.ID]
		if before.Verdict != Found {
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
