package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is a fault in a policy text.
type Error struct {
	Line    int // from 1; 0 when the fault has no single place
	Column  int // from 0: where the item begins, its dash included
	Message string
	Hint    string // what to do instead; shown in a dry run
	// Syntax tells that the text is not YAML.
	Syntax bool
}

// Error gives the message in the genuine server's form.
func (e *Error) Error() string {
	if e.Line == 0 || e.Syntax {
		return e.Message
	}
	return fmt.Sprintf("Error at line %d, column %d in policy : %s", e.Line, e.Column, e.Message)
}

// place is where an item of the text begins.
type place struct{ line, column int }

// placeOf is n's own place.
func placeOf(n *yaml.Node) place { return place{n.Line, n.Column - 1} }

// placeIn is the place of an item of list: in block style the column of its
// dash, which is also what the genuine server reports for a one-line item.
func placeIn(list, item *yaml.Node) place {
	if list.Style&yaml.FlowStyle != 0 {
		return placeOf(item)
	}
	return place{item.Line, list.Column - 1}
}

func (p place) errorf(format string, args ...any) *Error {
	return &Error{Line: p.line, Column: p.column, Message: fmt.Sprintf(format, args...)}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError is what the YAML library says, in the server's words.
func syntaxError(err error) *Error {
	text := err.Error()
	e := &Error{Syntax: true, Line: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			e.Line = n
		}
		text = text[len(m[0]):]
	}
	if text == "did not find expected node content" {
		text += " while parsing a flow node"
	}
	e.Message = strings.TrimSpace(text)
	return e
}
