package versions

import (
	"bytes"
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
