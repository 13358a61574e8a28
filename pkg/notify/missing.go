package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/secretsync/syncer/pkg/targets"
)

// Bounds of MissingFile, which is for people to read.
const (
	mostMissing = 20  // targets
	mostReason  = 500 // bytes of each
	mostShown   = 4000
)

// Failed notes why a target has not been delivered.
func (a *Application) Failed(key targets.Key, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failures == nil {
		a.failures = map[targets.Key]string{}
	}
	a.failures[key] = shorten(why.Error(), mostReason)
}

// SayMissing writes MissingFile, for those who wait and do not see the log.
// Where all is delivered, or was once, it does nothing.
func (a *Application) SayMissing() error {
	missing := a.Missing()
	if provided, err := a.status.Provided(); len(missing) == 0 || provided || err != nil {
		return err
	}
	var text strings.Builder
	a.mu.Lock()
	for i, key := range missing {
		if i == mostMissing {
			fmt.Fprintf(&text, "and %d more\n", len(missing)-i)
			break
		}
		why, ok := a.failures[key]
		if !ok {
			why = "not tried yet"
		}
		fmt.Fprintf(&text, "%s: %s\n", key, why)
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
