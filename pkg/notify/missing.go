package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

// Bounds of MissingFile, which is for people to read.
const (
	mostMissing = 20  // targets
	mostReason  = 500 // bytes of each
	mostShown   = 4000
)

// SayMissing writes MissingFile, for those who wait and do not see the log.
// Where all is delivered, or was once, it does nothing.
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

// Missing returns what MissingFile says, as one line; "" without the file.
func (s *Status) Missing() (string, error) {
	text, err := s.read(MissingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return shorten(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; "), mostShown), err
}

// shorten makes a text one line of what can be printed.
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
