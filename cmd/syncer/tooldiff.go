package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// Statuses of diff, as those of diff(1).
const (
	diffFound  = 1
	diffFailed = 2
)

// difference is what diff tells about one target; never a value.
type difference struct {
	Key targets.Key `json:"key"`
	// State is "unchanged", "missing", "mode" or "content".
	State string `json:"state"`
	// Aliases are those that differ, when the state is "content"; none where
	// the format does not tell one alias from another.
	Aliases []string `json:"aliases"`
}

func newDiffCommand() *cobra.Command {
	var f toolFlags
	var values string
	cmd := newToolCommand(&f, "diff", "Tell which groups and aliases on disk are not as they would be rendered", `Renders with values from a file, as render does, and compares with what is
below --secrets-dir. Names of groups and aliases are told, never values.

Exit status, as that of diff(1): 0 if nothing differs, 1 if something does, 2
if anything is wrong.`, diffFailed,
		func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(cmd)
			if err != nil {
				return &statusError{diffFailed, err}
			}
			o, err := newOffline(values, cmd.InOrStdin(), os.DirFS(f.sources.TemplatesDir))
			if err != nil {
				return &statusError{diffFailed, err}
			}
			ts := o.expand(cfg.Targets)
			results, err := o.renderAll(cmd.ErrOrStderr(), ts)
			if err != nil {
				return &statusError{diffFailed, err}
			}
			differences, err := f.compareAll(cmd.Context(), ts, results)
			if err != nil {
				return &statusError{diffFailed, err}
			}
			return printDifferences(cmd.OutOrStdout(), f.output, differences)
		})
	cmd.Flags().StringVar(&values, "values", "", "the file of values; - for standard input")
	return cmd
}

// compareAll compares each target with what is there.
func (f *toolFlags) compareAll(ctx context.Context, ts []*targets.Target, results []render.Result) ([]difference, error) {
	sink := sinks.NewFiles(f.sources.SecretsDir, nil)
	found := make([]difference, len(ts))
	for i, t := range ts {
		have, err := sink.Read(ctx, t)
		if err != nil {
			return nil, err
		}
		found[i] = difference{t.Key, stateOf(t, results[i], have), []string{}}
		if found[i].State == "content" {
			found[i].Aliases = differing(t, results[i], have)
		}
	}
	return found, nil
}

func stateOf(t *targets.Target, want render.Result, have sinks.State) string {
	changes := workers.Plan(workers.Want{Parts: want.Parts, Mode: t.File.Mode}, have, workers.Policy{})
	same := len(changes.Remove) == 0
	for name, part := range want.Parts {
		same = same && part.Equal(have.Parts[name])
	}
	switch {
	case changes.Empty():
		return "unchanged"
	case len(have.Parts) == 0:
		return "missing"
	case same:
		return "mode"
	}
	return "content"
}

func printDifferences(w io.Writer, output string, differences []difference) error {
	changed := 0
	for _, d := range differences {
		if d.State != "unchanged" {
			changed++
		}
	}
	if output == outputJSON {
		if err := printJSON(w, map[string]any{"targets": differences}); err != nil {
			return &statusError{diffFailed, err}
		}
	} else {
		for _, d := range differences {
			if d.State != "unchanged" {
				fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", d.Key, d.State, strings.Join(d.Aliases, ", ")), ": "))
			}
		}
	}
	if changed > 0 {
		return &statusError{diffFound, errLogged}
	}
	return nil
}
