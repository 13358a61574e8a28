package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Published is the content of a variable that follows the primary of a set.
type Published struct {
	Text  string   `name:"text"`               // a part's name, or a template of parts
	Parts []string `name:"parts" kind:"texts"` // if Text is empty: the set itself, with only these parts
}

// Of returns the value to publish for a set; false if there is no primary yet. The error
// contains no byte of a part.
func (p Published) Of(doc *versions.Document) (secret.Value, bool, error) {
	primary, ok := doc.Primary()
	switch {
	case !ok:
		return secret.Value{}, false, nil
	case p.Text == "":
		text, err := doc.With(p.Parts).Encode()
		return secret.New(text), true, err
	}
	value, err := p.versionText(primary)
	return value, err == nil, err
}

// Check returns why a variable can never be published; sample is a version like those of
// the set. Without parts, only problems that do not depend on them are found.
func (p Published) Check(sample versions.Version) error {
	if p.Text != "" {
		if t, err := p.parse(); err != nil || sample.Parts == nil {
			return err
		} else if _, err := p.versionText(sample); err != nil && (t == nil || t.certain(err)) {
			return err
		}
		return nil
	}
	var missing []error
	for _, part := range p.Parts {
		if sample.Parts != nil {
			missing = append(missing, lacks(sample, part))
		}
	}
	return errors.Join(missing...)
}

// parse returns the template; nil if the text is the name of a part.
func (p Published) parse() (*parsed, error) {
	if !strings.Contains(p.Text, "{{") {
		return nil, nil
	}
	t, err := parseTemplate("publish", p.Text)
	if err != nil {
		return nil, fmt.Errorf("the template cannot be read: %w", err)
	}
	t.ofParts = true
	return t, nil
}

// versionText returns the text of a version.
func (p Published) versionText(v versions.Version) (secret.Value, error) {
	t, err := p.parse()
	switch {
	case err != nil:
		return secret.Value{}, err
	case t == nil:
		return secret.New(bytes.Clone(v.Parts[p.Text].Bytes())), lacks(v, p.Text)
	}
	parts := map[string]any{}
	for name, part := range v.Parts {
		parts[name] = string(part.Bytes())
	}
	text, err := t.execute(&run{work: work{left: maxWork}}, parts, nil)
	if err != nil {
		return secret.Value{}, fmt.Errorf("the template cannot be filled in with the parts %q: %w", v.PartNames(), err)
	}
	return text, nil
}

// lacks returns an error if the version does not have a part.
func lacks(v versions.Version, part string) error {
	if _, ok := v.Parts[part]; ok {
		return nil
	}
	return fmt.Errorf("the set has no part %q, but %q", part, v.PartNames())
}
