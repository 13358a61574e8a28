package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Error is a fault in a policy text.
type Error struct {
	Line    int // from 1, or from 0 if the genuine server counts so; see Located
	Column  int // from 0: start of the item, including its dash
	Message string
	Hint    string // suggested correction, shown in a dry run
	// Bare means that the genuine server gives no position for such a fault.
	Bare bool
	// Genuine is the genuine server's message, if it is less detailed than Message.
	Genuine string
	// MarkLine and MarkColumn are the position at which the genuine server's YAML parser
	// stops, both from 1. They are 0 if unknown, and for other faults.
	MarkLine, MarkColumn int
	mention              place // of an object that does not exist; no part of an answer
}

// Position returns the line and the column of the fault, both from 1, and false if they
// are unknown.
func (e *Error) Position() (line, column int, ok bool) {
	switch {
	case e.Located():
		return max(e.Line, 1), e.Column + 1, true
	case e.mention != place{}:
		return e.mention.line, e.mention.column + 1, true
	}
	return 0, 0, false
}

// Located reports whether the fault has a position. If not, line and column are
// both 0.
func (e *Error) Located() bool { return e.Line > 0 || e.Column > 0 }

// Error returns the message in the genuine server's format.
func (e *Error) Error() string {
	if !e.Located() || e.Bare {
		return e.Message
	}
	return fmt.Sprintf("Error at line %d, column %d in policy : %s", e.Line, e.Column, e.Message)
}

// place is the position at which an item of the text begins.
type place struct{ line, column int }

// placeOf returns the position of n itself.
func placeOf(n *yaml.Node) place { return place{n.Line, n.Column - 1} }

// placeIn returns the position of an item of list. In block style that is the
// column of its dash. The genuine server reports the same column for a one-line
// item.
func placeIn(list, item *yaml.Node) place {
	if list.Style&yaml.FlowStyle != 0 {
		return placeOf(item)
	}
	return place{item.Line, list.Column - 1}
}

// keyOf returns the position after the colon of the mapping's first key, with lines
// counted from 0. The genuine server has read that far when it rejects the mapping.
func keyOf(mapping *yaml.Node) place {
	if len(mapping.Content) == 0 {
		return place{mapping.Line - 1, mapping.Column}
	}
	key := mapping.Content[0]
	return place{key.Line - 1, key.Column + utf8.RuneCountInString(key.Value)}
}

func (p place) errorf(format string, args ...any) *Error {
	return &Error{Line: p.line, Column: p.column, Message: fmt.Sprintf(format, args...)}
}

// bare is errorf for a fault for which the genuine server gives no position.
func (p place) bare(format string, args ...any) *Error {
	e := p.errorf(format, args...)
	e.Bare = true
	return e
}

// expected returns the error for an attribute value of the wrong type.
func (p place) expected(kind, attribute, got string) *Error {
	return p.errorf("Expected a %s for field '%s', got %s", kind, attribute, got)
}

// within moves a fault on the statement's own line to the start of the statement.
// The genuine server has read the whole line when it finds the fault.
func (p place) within(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Line == p.line {
		e.Column = p.column
	}
	return err
}

// context holds the text that the genuine server adds to some messages of its YAML
// parser. Our parser uses the same messages.
var context = map[string]string{
	"did not find expected node content":             "while parsing a flow node",
	"did not find expected '-' indicator":            "while parsing a block collection",
	"did not find expected ',' or ']'":               "while parsing a flow sequence",
	"did not find expected ',' or '}'":               "while parsing a flow mapping",
	"could not find expected ':'":                    "while scanning a simple key",
	"did not find expected whitespace or line break": "while scanning a tag",
	"found character that cannot start any token":    "while scanning for the next token",
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError translates an error of the YAML library into the genuine server's
// message.
func syntaxError(err error, lines [][]byte) *Error {
	text := err.Error()
	e := &Error{Bare: true, Line: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			e.Line = n
		}
		text = text[len(m[0]):]
	}
	text = strings.TrimSpace(text)
	e.Message = strings.TrimSpace(text + " " + context[text])
	e.Hint = hints[text]
	e.mark(text, lines)
	return e
}

var mappingColon = regexp.MustCompile(`:(\s|$)`)

// mark finds the position at which the genuine server's parser stops. The YAML library
// tells only a line.
func (e *Error) mark(message string, lines [][]byte) {
	if e.Line > len(lines) {
		return
	}
	line := lines[e.Line-1]
	switch message {
	case "could not find expected ':'": // at the start of the next token
		key := indent(line)
		for i, next := range lines[e.Line:] {
			if text := bytes.TrimSpace(next); len(text) > 0 && text[0] != '#' && indent(next) <= key {
				e.MarkLine, e.MarkColumn = e.Line+1+i, indent(next)+1
				return
			}
		}
	case "mapping values are not allowed in this context": // at the colon
		if all := mappingColon.FindAllIndex(line, 2); len(all) > 0 {
			e.MarkLine, e.MarkColumn = e.Line, all[len(all)-1][0]+1
		}
	}
}

func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

const occurs = "This error can occur when you "

// hints holds the genuine server's advice for messages of the YAML parser.
var hints = map[string]string{
	"block sequence entries are not allowed in this context": occurs + "have an unnecessary '-' at the beginning of a line",
	"could not find expected ':'":                            occurs + "have a missing ':' or missing space after ':'",
	"did not find expected '-' indicator":                    occurs + "have an indentation problem",
	"did not find expected whitespace or line break":         "Only one node can be defined per line.",
}
