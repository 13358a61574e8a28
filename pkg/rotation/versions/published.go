package versions

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/secretsync/syncer/pkg/secret"
)

// Published is the content of a variable that follows the primary of a set.
type Published struct {
	Text  string   `name:"text"`               // a part's name, or a template of parts
	Parts []string `name:"parts" kind:"texts"` // if Text is empty: the set itself, with only these parts
}

// Of returns the value to publish for a set; false if there is no primary yet. The error
// contains no byte of a part.
func (p Published) Of(doc *Document) (secret.Value, bool, error) {
	primary, ok := doc.Primary()
	switch {
	case !ok:
		return secret.Value{}, false, nil
	case p.Text == "":
		text, err := doc.With(p.Parts).Encode()
		return secret.New(text), true, err
	}
	value, err := p.text(primary)
	return value, err == nil, err
}

// Check returns why a variable can never be published; sample is a version like those of
// the set. Without parts, only problems that do not depend on them are found.
func (p Published) Check(sample Version) error {
	if sample.Parts == nil {
		_, err := p.parse()
		return err
	}
	if p.Text != "" {
		_, err := p.text(sample)
		return err
	}
	var lacks []error
	for _, part := range p.Parts {
		lacks = append(lacks, sample.lacks(part))
	}
	return errors.Join(lacks...)
}

// parse returns the template; nil if the text is the name of a part.
func (p Published) parse() (*template.Template, error) {
	if !strings.Contains(p.Text, "{{") {
		return nil, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(p.Text)
	if err != nil {
		return nil, fmt.Errorf("the template cannot be read: %w", err)
	}
	return t, nil
}

// text returns the text of a version.
func (p Published) text(v Version) (secret.Value, error) {
	t, err := p.parse()
	switch {
	case err != nil:
		return secret.Value{}, err
	case t == nil:
		return secret.New(bytes.Clone(v.Parts[p.Text].Bytes())), v.lacks(p.Text)
	}
	parts := map[string]string{}
	for name, part := range v.Parts {
		parts[name] = string(part.Bytes())
	}
	var text bytes.Buffer
	if err := t.Execute(&text, parts); err != nil {
		return secret.Value{}, fmt.Errorf("the template cannot be filled in with the parts %q", v.PartNames())
	}
	return secret.New(text.Bytes()), nil
}

// lacks returns an error if the version does not have a part.
func (v Version) lacks(part string) error {
	if _, ok := v.Parts[part]; ok {
		return nil
	}
	return fmt.Errorf("the set has no part %q, but %q", part, v.PartNames())
}
