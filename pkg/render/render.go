// Package render turns the values of a target's entries into the bytes that
// applications read: a file in one of the formats, a template's result, or one
// file for each entry.
//
// It is pure. What it returns depends on its arguments alone: it reads no
// file, no environment, no clock and no randomness, so equal values give equal
// bytes.
//
// For values that the Secrets Provider writes without damage the bytes are the
// same as the Secrets Provider's. Any other value is written so that the
// format's reader gets exactly the value back, or is refused with an error. No
// error and no warning contains a value.
package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// Item is an entry's value, as Conjur gave it.
type Item struct {
	Alias string
	Value secret.Value
}

// Result is what a target's values look like.
type Result struct {
	// Parts is the content by part name: a single part named "" for a file,
	// one part for each alias with targets.FormatDirectory. The receiver owns
	// the values and wipes them.
	Parts map[string]secret.Value
	// Warnings say what was taken otherwise than it was meant, each naming
	// the alias.
	Warnings []string
	// Expires is when the first of the certificates among the values does.
	Expires targets.Expiry
}

// Render lays items out as t.Format says; template is the text that
// targets.FormatTemplate runs, and is ignored by the other formats. The items
// are those of t.Entries, in the same order and with the same aliases; their
// values are only read, and must stay as they are until Render returns.
//
// The error joins everything that is wrong, each naming format and alias, or
// the template's name and line.
func Render(t *targets.Target, template string, items []Item) (Result, error) {
	return renderWithin(nil, t, template, items)
}

// renderWithin is Render, with a budget for the template unless that is nil.
func renderWithin(budget *work, t *targets.Target, template string, items []Item) (Result, error) {
	if err := checkItems(t, items); err != nil {
		return Result{}, err
	}
	values, warnings, err := decode(t.Format, t.Entries, items)
	defer values.wipe()
	if err != nil {
		return Result{}, err
	}
	parts, err := renderParts(budget, t, template, values.entries)
	if err != nil {
		return Result{}, err
	}
	return Result{parts, warnings, values.expires}, nil
}

func renderParts(budget *work, t *targets.Target, template string, entries []entry) (map[string]secret.Value, error) {
	switch t.Format {
	case targets.FormatTemplate:
		content, err := runTemplate(t.Group, template, entries, budget)
		if err != nil {
			return nil, err
		}
		return map[string]secret.Value{"": content}, nil
	case targets.FormatDirectory:
		return partOfEach(entries), nil
	case targets.FormatJWKS, targets.FormatJWKSPublic:
		content, err := jwks(entries, t.Format == targets.FormatJWKSPublic)
		if err != nil {
			return nil, err
		}
		return map[string]secret.Value{"": content}, nil
	default:
		content, err := renderFile(t.Format, entries)
		if err != nil {
			return nil, err
		}
		return map[string]secret.Value{"": content}, nil
	}
}

// partOfEach makes a part of each entry, named by its alias.
func partOfEach(entries []entry) map[string]secret.Value {
	parts := make(map[string]secret.Value, len(entries))
	for _, e := range entries {
		parts[e.alias] = secret.New(slices.Clone(e.value))
	}
	return parts
}

// Check returns what is wrong with a target as far as it can be known before
// there are values: the format, its rules for aliases, and the template, which
// is run with placeholders. For an entry that stands for all variables, whose
// aliases are paths, the format must be able to hold such; a template runs with
// the alias "*" for it, and may name no alias that has no entry of its own.
//
// A template that runs into an error which other values might not cause, such
// as JSON that does not parse, is not reported.
func Check(t *targets.Target, template string) error {
	var sets []string
	aliases, all := make([]string, 0, len(t.Entries)), false
	for _, e := range t.Entries {
		if e.All() {
			all = true
		} else if e.Set() {
			sets = append(sets, e.Alias)
		} else if e.Path == "" {
			aliases = append(aliases, e.Alias)
		}
	}
	err := errors.Join(checkAliases(t.Format, aliases), checkPaths(t.Format, t.Entries), checkSets(t.Format, t.Entries))
	if all {
		err = errors.Join(err, checkAll(t.Format))
	}
	if err != nil {
		return err
	}
	if t.Format == targets.FormatTemplate {
		return checkTemplate(t.Group, template, aliases, sets, all)
	}
	return nil
}

// checkItems holds items against the entries and the entries against the
// format.
func checkItems(t *targets.Target, items []Item) error {
	if len(items) != len(t.Entries) {
		return fmt.Errorf("%d values for %d entries", len(items), len(t.Entries))
	}
	var aliases []string
	for i, item := range items {
		if item.Alias != t.Entries[i].Alias {
			return fmt.Errorf("a value for alias %q where one for %q is due", item.Alias, t.Entries[i].Alias)
		}
		if !t.Entries[i].Set() && t.Entries[i].Path == "" {
			aliases = append(aliases, item.Alias)
		}
	}
	return errors.Join(checkAliases(t.Format, aliases), checkPaths(t.Format, t.Entries), checkSets(t.Format, t.Entries))
}

// checkAliases reports unknown formats, aliases that break the format's rule,
// and aliases that occur twice.
func checkAliases(format targets.Format, aliases []string) error {
	rule, ok := aliasRule(format)
	if !ok {
		return fmt.Errorf("unknown format %q; use one of %s", format, formatNames())
	}
	var errs []error
	for _, alias := range aliases {
		if fault := rule(alias); fault != "" {
			errs = append(errs, fmt.Errorf("alias %q does not suit format %s: %s; use another alias", clip(alias), format, fault))
		}
	}
	for _, alias := range repeated(aliases) {
		errs = append(errs, fmt.Errorf("alias %q occurs more than once; use another alias for one of the entries", clip(alias)))
	}
	return errors.Join(errs...)
}

// repeated lists the aliases that occur more than once, each once.
func repeated(aliases []string) []string {
	seen := make(map[string]int, len(aliases))
	var twice []string
	for _, alias := range aliases {
		if seen[alias]++; seen[alias] == 2 {
			twice = append(twice, alias)
		}
	}
	return twice
}

// clip shortens text for a message.
func clip(text string) string {
	const most = 80
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
