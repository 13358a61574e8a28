// Package render converts the values of a target's entries into the bytes that
// applications read. These are a file in one of the formats, a template's output, or
// one file per entry.
//
// It is pure. Its results depend only on its arguments: it reads no file, no
// environment, no clock and no randomness. Therefore equal values give equal bytes.
//
// For values that the Secrets Provider writes without damage, the bytes equal the
// Secrets Provider's. All other values are encoded so that the format's reader gets
// exactly the value, or cause an error. No error and no warning contains a value.
package render

import (
	"errors"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// Item is an entry's value as received from Conjur.
type Item struct {
	Alias string
	Value secret.Value
}

// Result is the rendered content of a target.
type Result struct {
	// Parts is the content by part name: a single part named "" for a file, one
	// part for each alias with targets.FormatDirectory. The receiver owns the
	// values and wipes them.
	Parts map[string]secret.Value
	// Warnings describe values that were interpreted differently than declared.
	// Each names the alias.
	Warnings []string
	// Expires is the earliest expiry of the certificates among the values.
	Expires targets.Expiry
}

// Render renders items in the format t.Format. template is the text for
// targets.FormatTemplate; other formats ignore it. items must correspond to
// t.Entries, in the same order and with the same aliases. Their values must not
// change until Render returns.
//
// The error joins all faults. Each fault names the format and alias, or the
// template's name and line.
func Render(t *targets.Target, template string, items []Item) (Result, error) {
	return renderWithin(nil, t, template, items)
}

// renderWithin is Render with a work budget for the template. A nil budget means
// the default.
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
		content, err := renderFile(t, entries)
		if err != nil {
			return nil, err
		}
		return map[string]secret.Value{"": content}, nil
	}
}

// partOfEach returns one part for each entry, named by its alias.
func partOfEach(entries []entry) map[string]secret.Value {
	parts := make(map[string]secret.Value, len(entries))
	for _, e := range entries {
		parts[e.alias] = secret.New(slices.Clone(e.value))
	}
	return parts
}

// Check returns the faults of a target that can be found without values: in the
// format, in aliases, and in the template. It runs the template with placeholders.
// For an entry that stands for all variables, the aliases are paths, and the format
// must support them. A template then runs with the alias "*". It may name only
// aliases that have a separate entry.
//
// Check ignores a template error that other values might avoid, such as JSON that
// does not parse.
func Check(t *targets.Target, template string) error {
	var sets []string
	aliases, all := make([]string, 0, len(t.Entries)), false
	for _, e := range t.Entries {
		if e.All() {
			all = true
		} else if e.IsSet() {
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

// checkItems compares items with the entries, and checks the entries against the
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
		if !t.Entries[i].IsSet() && t.Entries[i].Path == "" {
			aliases = append(aliases, item.Alias)
		}
	}
	return errors.Join(checkAliases(t.Format, aliases), checkPaths(t.Format, t.Entries), checkSets(t.Format, t.Entries))
}

// checkAliases reports unknown formats, aliases that violate the format's rule, and
// duplicate aliases.
func checkAliases(format targets.Format, aliases []string) error {
	rule, ok := aliasRule(format)
	if !ok {
		return fmt.Errorf("unknown format %q; use one of %s", format, formatNames())
	}
	var errs []error
	for _, alias := range aliases {
		if fault := rule(alias); fault != "" {
			errs = append(errs, fmt.Errorf("alias %q does not suit format %s: %s; use another alias", brief.Input(alias), format, fault))
		}
	}
	for _, alias := range repeated(aliases) {
		errs = append(errs, fmt.Errorf("alias %q occurs more than once; use another alias for one of the entries", brief.Input(alias)))
	}
	return errors.Join(errs...)
}

// repeated lists the aliases that occur more than once, without duplicates.
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
