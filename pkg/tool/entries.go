package tool

import (
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

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
