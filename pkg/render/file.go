package render

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// layout says how a file combines its entries. No file ends in a line feed.
type layout struct {
	open, separator, end string
	sorted               bool // by alias
	// write appends an entry. If the format cannot hold the value, it returns the
	// reason and appends nothing of the value.
	write func(w *buffer, e entry) fault
}

// fault says why a format cannot hold a value. The empty fault means that the value
// is valid.
type fault string

// ValueError means that a format cannot hold an entry's value. Its text contains no
// part of the value.
type ValueError struct {
	Format targets.Format
	Alias  string
	fault  fault
	others string // the formats that can hold it
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("format %s cannot hold the value of alias %q: %s; use format %s, or a template that writes it in base64 with \"b64enc\"",
		e.Format, brief.Input(e.Alias), e.fault, e.others)
}

// holding names the formats that hold a value which another one cannot hold.
func holding(value []byte) string {
	text, noNUL := utf8.Valid(value), bytes.IndexByte(value, 0) < 0
	switch {
	case text && noNUL:
		return "bash, json or directory"
	case text:
		return "json or directory"
	case noNUL:
		return "bash or directory"
	}
	return "directory"
}

// ValueErrors returns the parts of Render's error if all of them are ValueErrors.
// Otherwise it returns none.
func ValueErrors(err error) (unfit []*ValueError) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		v, ok := errors.AsType[*ValueError](err)
		if !ok {
			return nil
		}
		unfit = append(unfit, v)
	}
	return unfit
}

// Values that text formats, and formats for environment variables, cannot hold.
const (
	notText fault = "it is not valid UTF-8"
	hasNUL  fault = "it has a NUL byte, which an environment variable cannot have"
)

func layoutOf(t *targets.Target) layout {
	switch t.Format {
	case targets.FormatYAML:
		return layout{separator: "\n", write: writeYAML}
	case targets.FormatJSON:
		return layout{open: "{", separator: ",", end: "}", write: writeJSON}
	case targets.FormatDotenv:
		return layout{separator: "\n", write: func(w *buffer, e entry) fault { return writeDotenv(w, e, t.DotenvReaders) }}
	case targets.FormatBash:
		return layout{separator: "\n", write: writeBash}
	case targets.FormatProperties:
		return layout{separator: "\n", write: writeProperties}
	case targets.FormatJavaProperties:
		return layout{separator: "\n", write: writeJavaProperties}
	case targets.FormatEnvFile:
		return layout{separator: "\n", write: writeEnvFile}
	case targets.FormatKubernetesEnv:
		return layout{separator: "\n", sorted: true, write: writeKubernetesEnv}
	}
	panic("render: no layout for format " + string(t.Format))
}

// renderFile renders entries in the format of t. Their aliases must satisfy its rule.
func renderFile(t *targets.Target, entries []entry) (secret.Value, error) {
	l := layoutOf(t)
	size := 16
	for _, e := range entries {
		size += len(e.alias) + len(e.value) + len(e.value)/8 + 16
	}
	w := &buffer{b: make([]byte, 0, size)}
	w.writeText(l.open)
	if l.sorted {
		entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.alias, b.alias) })
	}
	var errs []error
	for i, e := range entries {
		if i > 0 {
			w.writeText(l.separator)
		}
		if f := l.write(w, e); f != "" {
			errs = append(errs, &ValueError{t.Format, e.alias, f, holding(e.value)})
		}
	}
	w.writeText(l.end)
	if errs != nil {
		w.wipe()
		return secret.Value{}, errors.Join(errs...)
	}
	return secret.New(w.b), nil
}
