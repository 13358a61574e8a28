package render

import (
	"errors"
	"fmt"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// MaxSecret is how many bytes the values of a Kubernetes Secret may have
// together (core/v1 MaxSecretSize).
const MaxSecret = 1 << 20

// templatesWork is what all templates of a Secret may do together, so that a
// Secret with many that run away holds nobody up.
const templatesWork = 4 * maxWork

// Data is what the data of a Kubernetes Secret look like.
type Data struct {
	// Parts are the values by data key. The receiver owns and wipes them.
	Parts map[string]secret.Value
	// Errs says, by data key, why a group has none in Parts. It is as with
	// Render, or what the look-up of the template says. Under "" is why there
	// is nothing at all: a set of the map cannot be laid out.
	Errs map[string]error
	// Warnings say what was taken otherwise than it was meant, each naming
	// the data key.
	Warnings []string
	// Expires is as with Render.
	Expires targets.Expiry
	// Work is how much the templates did, in units of some nanoseconds.
	Work int
}

// Secret makes the data of the Kubernetes Secret t: of each entry a value under
// its alias, and of each group a value under its name. What one group's faults
// are does not touch the others.
//
// value returns the value of a variable, which is only read, and template the
// text of the template of a group that has the format template.
func Secret(t *targets.Target, value func(variable string) secret.Value, template func(group *targets.Target) (string, error)) Data {
	decoded, warnings, err := decode(targets.FormatDirectory, t.Entries, itemsOf(t, value))
	defer decoded.wipe()
	if err != nil {
		return Data{Errs: map[string]error{"": err}}
	}
	if size := decoded.size(); size > MaxSecret {
		return Data{Errs: map[string]error{"": fmt.Errorf("the values of the map have %d bytes together, and a Secret can have %d", size, MaxSecret)}}
	}
	data := Data{Parts: partOfEach(decoded.entries), Errs: map[string]error{}, Warnings: warnings, Expires: decoded.expires}
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

// dataRun makes the values of a Secret's groups, one after the other.
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
			return errors.New("not run, as the other templates of the Secret have used up all work that they may do together")
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
		r.data.Warnings = append(r.data.Warnings, fmt.Sprintf("data key %q: %s", clip(group.Group), warning))
	}
	return nil
}
