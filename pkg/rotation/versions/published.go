package versions

import (
	"errors"

	"github.com/secretsync/syncer/pkg/secret"
)

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
