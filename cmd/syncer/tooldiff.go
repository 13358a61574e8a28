package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
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
	// State is "unchanged", "missing", "mode", "owner" or "content".
	State string `json:"state"`
	// Aliases are those that differ, when the state is "content"; none where
	// the format does not tell one alias from another. Of a Secret they are
	// data keys.
	Aliases []string `json:"aliases"`
	// Removed are the data keys of a Secret that would go.
	Removed []string `json:"removed,omitempty"`
}

// line is the difference in words.
func (d difference) line() string {
	text := fmt.Sprintf("%s: %s", d.Key, d.State)
	if len(d.Aliases) > 0 {
		text += ": " + strings.Join(d.Aliases, ", ")
	}
	if len(d.Removed) > 0 {
		text += "; to be removed: " + strings.Join(d.Removed, ", ")
	}
	return text
}

// diffFlags are those of diff alone.
type diffFlags struct {
	toolFlags
	values, kubeconfig, namespace string
}

func newDiffCommand() *cobra.Command {
	var f diffFlags
	cmd := newToolCommand(&f.toolFlags, "diff [SECRET...]", "Tell what is not as it would be rendered, on disk or in the cluster", `Renders with values from a file, as render does, and compares with what is
there: files with those below --secrets-dir, and Kubernetes Secrets with those
in the cluster. Names of groups, aliases and data keys are told, never values.

Secrets are those of the configuration, if its destination is k8s_secrets; or
those named, as NAME or NAMESPACE/NAME, with what they themselves define; or
those of a manifest named by -f. Of the API server, which is found by
--kubeconfig, $KUBECONFIG or from inside a Pod, the verb get is needed, for
Secrets and for the ConfigMaps that templates are in.

The state "owner" of a Secret says that its data are right, but that another
tool owns some of them, so that run would take them over.

Exit status, as that of diff(1): 0 if nothing differs, 1 if something does, 2
if anything is wrong.`, diffFailed,
		func(cmd *cobra.Command, args []string) error {
			differences, err := f.diff(cmd, args)
			if err != nil {
				return &statusError{diffFailed, err}
			}
			return printDifferences(cmd.OutOrStdout(), f.output, differences)
		})
	flags := cmd.Flags()
	flags.StringVar(&f.values, "values", "", "the file of values; - for standard input")
	flags.StringVarP(&f.pod.manifest, "file", "f", "", "a manifest of one or several YAML documents, whose Secrets are compared with those in the cluster; - for standard input")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file that says where the cluster is")
	flags.StringVar(&f.namespace, "namespace", "", "the namespace of Secrets that are named without one (default: that of the kubeconfig's context, or the Pod's)")
	return cmd
}

func (f *diffFlags) diff(cmd *cobra.Command, names []string) ([]difference, error) {
	var cfg *config.Config
	if f.pod.manifest == "" && (len(names) == 0 || f.explicit || f.sources.ConfigFile != "") {
		var err error
		if cfg, err = f.load(cmd); err != nil {
			return nil, err
		}
	}
	if cfg == nil || len(names) > 0 || cfg.Destination == config.DestinationKubernetes {
		return f.diffCluster(cmd, cfg, names)
	}
	return f.diffFiles(cmd, cfg.Targets)
}

// diffFiles compares files with those on disk.
func (f *diffFlags) diffFiles(cmd *cobra.Command, ts []*targets.Target) ([]difference, error) {
	o, err := newOffline(f.values, cmd.InOrStdin(), folderTemplates(os.DirFS(f.sources.TemplatesDir)))
	if err != nil {
		return nil, err
	}
	return o.compare(cmd, o.expand(cmd.ErrOrStderr(), ts), sinks.NewFiles(f.sources.SecretsDir, nil))
}

// compare renders the targets and compares each with what is there.
func (o *offline) compare(cmd *cobra.Command, ts []*targets.Target, sink workers.Sink) ([]difference, error) {
	results, err := o.renderAll(cmd.ErrOrStderr(), ts)
	if err != nil {
		return nil, err
	}
	found := make([]difference, len(ts))
	for i, t := range ts {
		if found[i], err = compareOne(cmd.Context(), t, results[i], sink); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func compareOne(ctx context.Context, t *targets.Target, want render.Result, sink workers.Sink) (difference, error) {
	d := difference{Key: t.Key, Aliases: []string{}}
	have, err := sink.Read(ctx, t)
	var missing *sinks.MissingError
	if err != nil && !errors.As(err, &missing) {
		return d, err
	}
	changes := workers.Plan(wanted(t, want), have, workers.Policy{})
	d.State = stateOf(t, want, have, changes)
	if missing != nil || t.Secret != nil && t.Secret.Missing {
		d.State = "missing"
	}
	switch {
	case d.State != "content":
	case t.Secret == nil:
		d.Aliases = differing(t, want, have)
	default:
		for _, key := range changes.Set { // which may be stale and the same
			if there, ok := have.Parts[key]; !ok || !there.Equal(want.Parts[key]) {
				d.Aliases = append(d.Aliases, key)
			}
		}
		d.Removed = changes.Remove
	}
	return d, nil
}

// wanted is what a target should hold.
func wanted(t *targets.Target, result render.Result) workers.Want {
	want := workers.Want{Parts: result.Parts, Mode: t.File.Mode}
	if t.Secret != nil {
		want.KeepAll = t.Secret.HoldAll
		want.Keep = map[string]bool{}
		for _, key := range t.Secret.Hold {
			want.Keep[key] = true
		}
	}
	return want
}

func stateOf(t *targets.Target, want render.Result, have sinks.State, changes sinks.Changes) string {
	same := len(changes.Remove) == 0
	for name, part := range want.Parts {
		there, ok := have.Parts[name]
		same = same && ok && part.Equal(there)
	}
	switch {
	case changes.Empty():
		return "unchanged"
	case len(have.Parts) == 0 && t.Secret == nil:
		return "missing"
	case same && t.Secret != nil:
		return "owner"
	case same:
		return "mode"
	}
	return "content"
}

func printDifferences(w io.Writer, output string, differences []difference) error {
	var lines strings.Builder
	for _, d := range differences {
		if d.State != "unchanged" {
			fmt.Fprintln(&lines, d.line())
		}
	}
	var err error
	if output == outputJSON {
		err = printJSON(w, map[string]any{"targets": differences})
	} else {
		_, err = io.WriteString(w, lines.String())
	}
	switch {
	case err != nil:
		return &statusError{diffFailed, err}
	case lines.Len() > 0:
		return &statusError{diffFound, errLogged}
	}
	return nil
}
