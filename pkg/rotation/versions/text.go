package versions

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/secretsync/syncer/pkg/secret"
)

// Text is the form of a version for readers that do not understand sets.
type Text struct {
	part     string
	template *template.Template // nil: only the part
}

// ParseText reads the name of a part, or a template of parts.
func ParseText(form string) (Text, error) {
	if !strings.Contains(form, "{{") {
		return Text{part: form}, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(form)
	if err != nil {
		return Text{}, fmt.Errorf("the template cannot be read: %w", err)
	}
	return Text{template: t}, nil
}

// Of returns the text of a version. The error contains no byte of a part.
func (t Text) Of(v Version) (secret.Value, error) {
	if t.template == nil {
		if err := v.Lacks(t.part); err != nil {
			return secret.Value{}, err
		}
		return secret.New(bytes.Clone(v.Parts[t.part].Bytes())), nil
	}
	parts := map[string]string{}
	for name, part := range v.Parts {
		parts[name] = string(part.Bytes())
	}
	var text bytes.Buffer
	if err := t.template.Execute(&text, parts); err != nil {
		return secret.Value{}, fmt.Errorf("the template cannot be filled in with the parts %q", v.PartNames())
	}
	return secret.New(text.Bytes()), nil
}

// Lacks returns an error if the version does not have a part.
func (v Version) Lacks(part string) error {
	if _, ok := v.Parts[part]; ok {
		return nil
	}
	return fmt.Errorf("the set has no part %q, but %q", part, v.PartNames())
}

// Published is the content of a variable that follows the primary of a set.
type Published struct {
	Text  string   `name:"text"`               // a part's name, or a template of parts
	Parts []string `name:"parts" kind:"texts"` // if Text is empty: the set itself, with only these parts
}

// Of returns the value to publish for a set; false if there is no primary yet.
func (p Published) Of(doc *Document) (secret.Value, bool, error) {
	primary, ok := doc.Primary()
	switch {
	case !ok:
		return secret.Value{}, false, nil
	case p.Text == "":
		text, err := doc.With(p.Parts).Encode()
		return secret.New(text), true, err
	}
	text, err := ParseText(p.Text)
	if err != nil {
		return secret.Value{}, false, err
	}
	value, err := text.Of(primary)
	return value, err == nil, err
}

// Check returns why a variable can never be published; sample is a version like those of
// the set. Without parts, only problems that do not depend on them are found.
func (p Published) Check(sample Version) error {
	text, err := ParseText(p.Text)
	if err != nil || sample.Parts == nil {
		return err
	}
	if p.Text != "" {
		_, err = text.Of(sample)
		return err
	}
	var lacks []error
	for _, part := range p.Parts {
		lacks = append(lacks, sample.Lacks(part))
	}
	return errors.Join(lacks...)
}
