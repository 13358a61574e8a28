package tool

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// difference is the result of Diff for one target. It contains no value.
type difference struct {
	Key targets.Key `json:"key"`
	// State is "unchanged", "missing", "mode", "owner" or "content".
	State string `json:"state"`
	// Aliases are the differing aliases if the state is "content". It is empty if the
	// format does not distinguish the aliases. For a Secret it contains data keys.
	Aliases []string `json:"aliases"`
	// Removed are the data keys of a Secret that a sync would remove.
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

// Diff renders targets and compares them with the existing content. It compares named
// Secrets, those of the manifest or those of the configuration with the cluster's.
// Otherwise it compares files with those below the secrets folder. The error is
// ErrDiffers if there is a difference.
func (t *Tool) Diff(ctx context.Context, names []string, cluster Cluster) error {
	found, err := t.diff(ctx, names, cluster)
	if err != nil {
		return err
	}
	return t.printDifferences(found)
}

func (t *Tool) diff(ctx context.Context, names []string, cluster Cluster) ([]difference, error) {
	var cfg *config.Config
	if len(t.Manifests) == 0 && (len(names) == 0 || t.Sources.AnnotationsNamed || t.Sources.ConfigFile.Name != "") {
		var err error
		if cfg, err = t.load(); err != nil {
			return nil, err
		}
	}
	if cfg == nil || len(names) > 0 || cfg.Destination == config.DestinationKubernetes {
		return t.diffCluster(ctx, cfg, names, cluster)
	}
	return t.compare(ctx, cfg.Targets, t.templates(nil), sinks.NewFiles(t.Sources.SecretsDir, nil))
}

// compare renders the targets and compares each with the existing content.
func (t *Tool) compare(ctx context.Context, ts []*targets.Target, templates *templates, sink workers.Sink) ([]difference, error) {
	o, err := t.offline(templates)
	if err != nil {
		return nil, err
	}
	all, err := o.sync(ctx, o.expand(ts), sink)
	found := make([]difference, len(all))
	for i, m := range all {
		found[i] = m.difference()
	}
	return found, err
}

// difference compares the wanted content with the existing content.
func (m *made) difference() difference {
	t := m.target
	d := difference{Key: t.Key, State: m.state(), Aliases: []string{}}
	switch {
	case d.State != "content":
	case t.Secret == nil:
		d.Aliases = differing(t, m.changes.Parts, m.have)
	default:
		for _, key := range m.changes.Set { // it may be stale but equal
			if !m.same(key) {
				d.Aliases = append(d.Aliases, key)
			}
		}
		d.Removed = m.changes.Remove
	}
	return d
}

// same reports whether a part exists with the wanted content.
func (m *made) same(part string) bool {
	there, ok := m.have.Parts[part]
	return ok && there.Equal(m.changes.Parts[part])
}

func (m *made) state() string {
	inSecret := m.target.Secret != nil
	same := len(m.changes.Remove) == 0
	for name := range m.changes.Parts {
		same = same && m.same(name)
	}
	switch {
	case m.missing || inSecret && m.target.Secret.Missing:
		return "missing"
	case m.changes.Empty():
		return "unchanged"
	case len(m.have.Parts) == 0 && !inSecret:
		return "missing"
	case same && inSecret:
		return "owner"
	case same:
		return "mode"
	}
	return "content"
}

func (t *Tool) printDifferences(differences []difference) error {
	var lines strings.Builder
	for _, d := range differences {
		if d.State != "unchanged" {
			fmt.Fprintln(&lines, d.line())
		}
	}
	var err error
	if t.Output.ForPrograms() {
		err = t.print(map[string]any{"targets": differences})
	} else {
		_, err = io.WriteString(t.Out, lines.String())
	}
	if err == nil && lines.Len() > 0 {
		err = ErrDiffers
	}
	return err
}

// differing names the aliases without the wanted content. It returns all if it cannot
// parse the existing content. It returns none if only something else differs, such as the
// order. In a template an alias may be anywhere, so it returns none there.
func differing(t *targets.Target, want map[string]secret.Value, have sinks.State) []string {
	aliases := []string{}
	names, wanted := entriesOf(t, want[sinks.WholeFile].Bytes())
	_, there := entriesOf(t, have.Parts[sinks.WholeFile].Bytes())
	for i, e := range t.Entries {
		var same bool
		switch t.Format {
		case targets.FormatTemplate:
			same = true
		case targets.FormatDirectory:
			part, ok := have.Parts[e.Alias]
			same = ok && part.Equal(want[e.Alias])
		default:
			if i < len(names) {
				text, ok := there[names[i]]
				same = ok && text == wanted[names[i]]
			}
		}
		if !same {
			aliases = append(aliases, e.Alias)
		}
	}
	return aliases
}

// entriesOf parses a file into the text of each alias, by the aliases' names in the file.
// It returns nothing if it cannot parse the file. The names in a rendered file are in the
// order of the entries.
func entriesOf(t *targets.Target, file []byte) (names []string, texts map[string]string) {
	names, texts = render.Entries(t.Format, file)
	if texts == nil || t.Format != targets.FormatJSON && t.Format != targets.FormatYAML {
		return names, texts
	}
	names = make([]string, len(t.Entries))
	for i, e := range t.Entries {
		names[i] = e.Alias
	}
	return names, texts
}
