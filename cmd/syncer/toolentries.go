package main

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// differing names the aliases that are not there as they are wanted: all of
// them when what is there cannot be taken apart, and none when only something
// else differs, such as the order. In a template an alias may be anywhere, so
// none is named.
func differing(t *targets.Target, want render.Result, have sinks.State) []string {
	aliases := []string{}
	names, wanted := entriesOf(t, want.Parts[sinks.WholeFile].Bytes())
	_, there := entriesOf(t, have.Parts[sinks.WholeFile].Bytes())
	for i, e := range t.Entries {
		var same bool
		switch t.Format {
		case targets.FormatTemplate:
			same = true
		case targets.FormatDirectory:
			part, ok := have.Parts[e.Alias]
			same = ok && part.Equal(want.Parts[e.Alias])
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

// entriesOf takes a file apart into what stands for each alias, by the names
// that aliases have in it; nothing when that cannot be done. Two files of one
// format that say the same for an alias have the same text for it. The names
// of a file that was rendered are in the order of the entries.
func entriesOf(t *targets.Target, file []byte) (names []string, texts map[string]string) {
	var err error
	switch t.Format {
	case targets.FormatJSON:
		err = json.Unmarshal(file, &texts)
	case targets.FormatYAML:
		err = yaml.Unmarshal(file, &texts)
	default:
		texts = map[string]string{}
		for rest := string(file); rest != ""; {
			end := entryEnd(t.Format, rest)
			name, text := cutEntry(t.Format, rest[:end])
			names, texts[name] = append(names, name), text
			rest = strings.TrimLeft(rest[end:], "\n")
		}
		return names, texts
	}
	if err != nil {
		return nil, nil
	}
	for _, e := range t.Entries {
		names = append(names, e.Alias)
	}
	return names, texts
}

// cutEntry cuts a line at the equal sign after the name, in which backslashes
// may escape others.
func cutEntry(format targets.Format, line string) (name, text string) {
	line = strings.TrimPrefix(line, "export ")
	if format != targets.FormatJavaProperties {
		name, text, _ = strings.Cut(line, "=")
		return name, text
	}
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=':
			return line[:i], line[i+1:]
		}
	}
	return line, ""
}

// entryEnd finds where the first entry of a file of lines ends: at a line feed
// that does not stand between quotes and, outside of them, follows no
// backslash. Only bash and dotenv have such.
func entryEnd(format targets.Format, text string) int {
	quotes := format == targets.FormatBash || format == targets.FormatDotenv
	var open byte // the quote that is to be closed; 0: none
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quotes && open != '\'':
			i++
		case open != 0:
			if c == open {
				open = 0
			}
		case c == '\n':
			return i
		case (c == '"' || c == '\'') && quotes:
			open = c
		}
	}
	return len(text)
}
