package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// renderFlags are those of render.
type renderFlags struct {
	toolFlags
	values, group, out string
}

func newRenderCommand() *cobra.Command {
	var f renderFlags
	cmd := newToolCommand(&f.toolFlags, "render", "Render groups with values from a file, without a server", `Renders what run would write, with values from a JSON object of variable id to
a text or to {"base64": "…"}. With --group one group's file goes to standard
output, byte for byte and nothing else; with --out all groups are written below
a folder. With -f the groups are those of the workload in a manifest, read as
validate does it; without --group and --out it is the Secrets of the manifest
that go to standard output as YAML, with what their conjur-map and their groups
make put into their data. Templates in ConfigMaps are read from the same
manifest. The variables that * stands for are those that have a value; what a
format cannot hold of them is left out, as run does it. Warnings go to standard
error.

With --output json standard output is {"targets": [...]}, each with "key",
"path", "mode", "format" and, of --group, "parts", each a "name" (empty, but
for the format directory) and its content in "base64"; of Secrets it is a List.

Exit status: 0, or 1 with nothing written if anything is wrong.`, 1,
		func(cmd *cobra.Command, _ []string) error { return f.render(cmd) })
	f.pod.addTo(cmd)
	cmd.Flags().StringVar(&f.values, "values", "", "the file of values; - for standard input")
	cmd.Flags().StringVar(&f.group, "group", "", "the group whose file is printed")
	cmd.Flags().StringVar(&f.out, "out", "", "the folder below which all files are written")
	return cmd
}

func (f *renderFlags) render(cmd *cobra.Command) error {
	switch {
	case f.pod.manifest == "-" && f.values == "-":
		return errors.New("-f and --values cannot both be standard input; name a file for one of the two")
	case f.group != "" && f.out != "":
		return errors.New("--group prints one file, and --out writes all; use one of the two")
	case f.group != "" || f.out != "":
		return f.renderGroups(cmd)
	case f.pod.manifest != "":
		return f.renderSecrets(cmd, f.values)
	}
	return errors.New("name one group with --group, a folder for all with --out, or a manifest of Secrets with -f")
}

// renderGroups prints one group or writes all.
func (f *renderFlags) renderGroups(cmd *cobra.Command) error {
	cfg, templates, err := f.loadGroups(cmd)
	if err != nil {
		return err
	}
	ts := cfg.Targets
	if len(ts) == 0 { // as the destination is not files
		return errors.New("there is no group to render; name a manifest of Secrets with -f")
	}
	if f.group != "" {
		if ts, err = onlyGroup(cfg, f.group); err != nil {
			return err
		}
	}
	o, err := newOffline(f.values, cmd.InOrStdin(), templates)
	if err != nil {
		return err
	}
	ts = o.expand(cmd.ErrOrStderr(), ts)
	results, err := o.renderAll(cmd.ErrOrStderr(), ts)
	switch {
	case err != nil:
		return err
	case f.out != "":
		err = writeAll(cmd.Context(), f.out, ts, results)
		if err == nil && f.output == outputJSON {
			err = printRendered(cmd.OutOrStdout(), f.out, ts, results, false)
		}
		return err
	case f.output == outputJSON:
		return printRendered(cmd.OutOrStdout(), f.sources.SecretsDir, ts, results, true)
	}
	return printOne(cmd, ts[0], results[0])
}

func onlyGroup(cfg *config.Config, name string) ([]*targets.Target, error) {
	for _, t := range cfg.Targets {
		if t.Group == name || string(t.Key) == name {
			return []*targets.Target{t}, nil
		}
	}
	return nil, fmt.Errorf("there is no group %q; there are %s", name, targetNames(cfg))
}

// renderAll renders all of the targets or, with an error about each that
// cannot be, none.
func (o *offline) renderAll(warnings io.Writer, ts []*targets.Target) ([]render.Result, error) {
	if err := o.check(ts); err != nil {
		return nil, err
	}
	results := make([]render.Result, len(ts))
	var errs []error
	for i, t := range ts {
		var err error
		if results[i], err = o.render(t); err != nil {
			errs = append(errs, err)
		}
		for _, warning := range results[i].Warnings {
			fmt.Fprintf(warnings, "warning: %s: %s\n", t.Key, oneLine(warning))
		}
	}
	return results, errors.Join(errs...)
}

// printOne writes exactly the bytes of a target's file.
func printOne(cmd *cobra.Command, t *targets.Target, result render.Result) error {
	whole, ok := result.Parts[sinks.WholeFile]
	if !ok {
		return fmt.Errorf("%s is a folder of files; write it with --out, or print it with --output json", t.Key)
	}
	_, err := cmd.OutOrStdout().Write(whole.Bytes())
	return err
}

// writeAll writes through the sink that run uses.
func writeAll(ctx context.Context, dir string, ts []*targets.Target, results []render.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sink := sinks.NewFiles(dir, nil)
	var errs []error
	for i, t := range ts {
		have, err := sink.Read(ctx, t)
		if err == nil {
			want := workers.Want{Parts: results[i].Parts, Mode: t.File.Mode}
			err = sink.Apply(ctx, t, workers.Plan(want, have, workers.Policy{}))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
