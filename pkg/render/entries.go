package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/targets"
)

// Entries splits a rendered file into the text for each alias. names are the
// aliases as the file writes them, in a fixed order. Both results are empty if the
// file cannot be split, as for a template's output. Two files of one format with
// the same value for an alias have the same text for it.
func Entries(format targets.Format, file []byte) (names []string, texts map[string]string) {
	var err error
	switch format {
	case targets.FormatTemplate, targets.FormatDirectory:
		return nil, nil
	case targets.FormatJSON:
		err = json.Unmarshal(file, &texts)
	case targets.FormatYAML:
		err = yaml.Unmarshal(file, &texts)
	default:
		texts = map[string]string{}
		for rest := string(file); rest != ""; {
			end := entryEnd(format, rest)
			name, text := cutEntry(format, rest[:end])
			names, texts[name] = append(names, name), text
			rest = strings.TrimLeft(rest[end:], "\n")
		}
		return names, texts
	}
	if err != nil {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(texts)), texts
}

// Aliases lists the aliases in a rendered file. The format must be one that can
// hold all variables. The result is empty if the file cannot be parsed.
func Aliases(format targets.Format, file []byte) []string {
	names, _ := Entries(format, file)
	if format == targets.FormatJavaProperties {
		for i, name := range names {
			names[i] = fromJavaText(name)
		}
	}
	return names
}

// fromJavaText reverses javaText.
func fromJavaText(text string) string {
	var units []uint16
	for i := 0; i < len(text); i++ {
		c := uint16(text[i])
		if c == '\\' && i+1 < len(text) {
			i++
			c = uint16(text[i])
			if n, err := strconv.ParseUint(text[i+1:min(i+5, len(text))], 16, 16); c == 'u' && err == nil {
				c, i = uint16(n), i+4
			}
		}
		units = append(units, c)
	}
	return string(utf16.Decode(units))
}

// cutEntry splits a line at the equal sign after the name. Backslashes may escape
// equal signs in the name.
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

// entryEnd returns the end of the first entry in a file of lines: a line feed
// outside quotes without a preceding backslash. Only the formats of shells have quotes
// and such backslashes.
func entryEnd(format targets.Format, text string) int {
	quotes := format == targets.FormatBash || format == targets.FormatDotenv || format == targets.FormatKubernetesEnv
	var open byte // the open quote; 0 if none
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
