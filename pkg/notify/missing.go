package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

// Limits of MissingFile, which is for human readers.
const (
	mostMissing = 20  // targets
	mostReason  = 500 // bytes of each
	mostShown   = 4000
)

// SayMissing writes MissingFile, for people who wait and do not see the log. It does
// nothing if everything is delivered, or once was.
func (a *Application) SayMissing() error {
	missing := a.missing()
	if provided, err := a.status.Provided(); len(missing) == 0 || provided || err != nil {
		return err
	}
	var text strings.Builder
	a.mu.Lock()
	for i, r := range missing {
		if i == mostMissing {
			fmt.Fprintf(&text, "and %d more\n", len(missing)-i)
			break
		}
		why := "not tried yet"
		if r.Status.Err != nil {
			why = shorten(r.Status.Err.Error(), mostReason)
		}
		fmt.Fprintf(&text, "%s: %s\n", r.Spec.Key, why)
	}
	same := text.String() == a.said
	a.said = text.String()
	a.mu.Unlock()
	if same {
		return nil
	}
	return a.status.put(MissingFile, note{text: []byte(text.String()), mode: 0o644})
}

// Missing returns the content of MissingFile as one line; "" without the file.
func (s *Status) Missing() (string, error) {
	text, err := s.read(MissingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return shorten(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; "), mostShown), err
}

// shorten returns a text as one line of printable characters.
func shorten(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
