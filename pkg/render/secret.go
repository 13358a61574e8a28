package render

import (
	"errors"
	"fmt"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// MaxSecret bounds the total size of a Kubernetes Secret's values, in bytes
// (core/v1 MaxSecretSize).
const MaxSecret = 1 << 20

// templatesWork bounds the work of all templates of a Secret together, so that a
// Secret with many runaway templates delays nobody.
const templatesWork = 4 * maxWork

// Data is the rendered data of a Kubernetes Secret.
type Data struct {
	// Parts are the values by data key. The receiver owns and wipes them.
	Parts map[string]secret.Value
	// Sets has, for each data key that an entry for a set of the map makes, the set's
	// variable.
	Sets map[string]string
	// Errs says, by data key, why a group is missing from Parts. The error comes
	// from Render or from the template lookup. The key "" holds an error that
	// prevents all output: a set of the map cannot be rendered.
	Errs map[string]error
	// Warnings describe values that were interpreted differently than declared.
	// Each names the data key.
	Warnings []string
	// Expires is as in Result.
	Expires targets.Expiry
	// Work is the work of the templates, in units of some nanoseconds.
	Work int
}

// Secret renders the data of the Kubernetes Secret t. Each entry becomes a value
// under its alias, and each group a value under its name. A fault in one group does
// not affect the others.
//
// value returns the value of a variable, which Secret only reads. template returns
// the template text for a group with the format template.
func Secret(t *targets.Target, value func(variable string) secret.Value, template func(group *targets.Target) (string, error)) Data {
	decoded, warnings, err := decode(targets.FormatDirectory, t.Entries, itemsOf(t, value))
	defer decoded.wipe()
	if err != nil {
		return Data{Errs: map[string]error{"": err}}
	}
	if size := decoded.size(); size > MaxSecret {
		return Data{Errs: map[string]error{"": fmt.Errorf("the values of the map have %d bytes together, and a Secret can have %d", size, MaxSecret)}}
	}
	data := Data{Parts: partOfEach(decoded.entries), Sets: setOfEach(decoded.entries), Errs: map[string]error{}, Warnings: warnings, Expires: decoded.expires}
	if t.Secret == nil {
		return data
	}
	r := dataRun{data: &data, budget: &work{left: templatesWork}, template: template}
	for _, part := range data.Parts {
		r.size += part.Len()
	}
	for _, group := range t.Secret.Groups {
		if err := r.group(group, itemsOf(group, value)); err != nil {
			data.Errs[group.Group] = err
		}
	}
	data.Work = templatesWork - r.budget.left
	return data
}

func itemsOf(t *targets.Target, value func(variable string) secret.Value) []Item {
	items := make([]Item, len(t.Entries))
	for i, e := range t.Entries {
		items[i] = Item{Alias: e.Alias, Value: value(e.Variable)}
	}
	return items
}

// dataRun renders the values of a Secret's groups, one after another.
type dataRun struct {
	data     *Data
	budget   *work
	size     int // of all values so far
	template func(group *targets.Target) (string, error)
}

func (r *dataRun) group(group *targets.Target, items []Item) error {
	if group.Format == targets.FormatDirectory {
		return fmt.Errorf("the format %s makes many files, and a data key holds one", group.Format)
	}
	text := ""
	if group.Format == targets.FormatTemplate {
		var err error
		if text, err = r.template(group); err != nil {
			return err
		}
		if r.budget.left <= 0 {
			return errors.New("not run, because the other templates of the Secret used up the limit of work; use fewer or simpler templates")
		}
	}
	result, err := renderWithin(r.budget, group, text, items)
	if err != nil {
		return err
	}
	whole := result.Parts[""]
	if size := whole.Len(); r.size+size > MaxSecret {
		whole.Wipe()
		return fmt.Errorf("with its %d bytes the data would have more than the %d that a Secret can have", size, MaxSecret)
	}
	r.size += whole.Len()
	r.data.Parts[group.Group] = whole
	r.data.Expires = r.data.Expires.First(result.Expires)
	for _, warning := range result.Warnings {
		r.data.Warnings = append(r.data.Warnings, fmt.Sprintf("data key %q: %s", brief.Input(group.Group), warning))
	}
	return nil
}
