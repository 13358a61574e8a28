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

func newRenderCommand() *cobra.Command {
	var f toolFlags
	var values, group, out string
	cmd := newToolCommand(&f, "render", "Render groups with values from a file, without a server", `Renders what run would write, with values from a JSON object of variable id to
a text or to {"base64": "…"}. With --group one group's file goes to standard
output, byte for byte and nothing else; with --out all groups are written below
a folder. With -f the Secrets of a manifest go to standard output as YAML, with
what their conjur-map and their groups make put into their data; templates in
ConfigMaps are read from the same manifest. Warnings go to standard error.

With --output json standard output is {"targets": [...]}, each with "key",
"path", "mode", "format" and, of --group, "parts", each a "name" (empty, but
for the format directory) and its content in "base64"; with -f it is a List.

Exit status: 0, or 1 with nothing written if anything is wrong.`, 1,
		func(cmd *cobra.Command, _ []string) error {
			if f.pod.manifest != "" {
				if group != "" || out != "" {
					return errors.New("-f prints the Secrets of a manifest; remove --group and --out")
				}
				return f.renderSecrets(cmd, values)
			}
			if (group == "") == (out == "") {
				return errors.New("name one group with --group, a folder for all with --out, or a manifest with -f")
			}
			cfg, err := f.load(cmd)
			if err != nil {
				return err
			}
			ts := cfg.Targets
			if group != "" {
				if ts, err = onlyGroup(cfg, group); err != nil {
					return err
				}
			}
			o, err := newOffline(values, cmd.InOrStdin(), folderTemplates(os.DirFS(f.sources.TemplatesDir)))
			if err != nil {
				return err
			}
			ts = o.expand(ts)
			results, err := o.renderAll(cmd.ErrOrStderr(), ts)
			switch {
			case err != nil:
				return err
			case out != "":
				err = writeAll(cmd.Context(), out, ts, results)
				if err == nil && f.output == outputJSON {
					err = printRendered(cmd.OutOrStdout(), out, ts, results, false)
				}
				return err
			case f.output == outputJSON:
				return printRendered(cmd.OutOrStdout(), f.sources.SecretsDir, ts, results, true)
			}
			return printOne(cmd, ts[0], results[0])
		})
	cmd.Flags().StringVarP(&f.pod.manifest, "file", "f", "", "a manifest of one or several YAML documents, whose Secrets are printed; - for standard input")
	cmd.Flags().StringVar(&values, "values", "", "the file of values; - for standard input")
	cmd.Flags().StringVar(&group, "group", "", "the group whose file is printed")
	cmd.Flags().StringVar(&out, "out", "", "the folder below which all files are written")
	return cmd
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
