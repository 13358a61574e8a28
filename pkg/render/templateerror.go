package render

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/secretsync/syncer/internal/brief"
)

// templateError says why and where a template failed, without any value.
type templateError struct {
	text  string
	cause error
}

func (e *templateError) Error() string { return e.text }
func (e *templateError) Unwrap() error { return e.cause }

// explain converts an error of text/template, whose message may quote a value. The
// result quotes only the template's text.
func (p *parsed) explain(err error) error {
	cause := p.cause(err)
	text := fmt.Sprintf("template: %s: %s", p.name, cause)
	if line, column, ok := p.position(err); ok {
		text = fmt.Sprintf("template: %s:%d:%d: %s", p.name, line, column, cause)
		if action := p.action(line, column); action != "" {
			text += ", in " + action
		}
	}
	return &templateError{text, cause}
}

// cause returns the first error of this package in the chain. Otherwise it derives
// an error from the kind of text/template's message and a word that also occurs in
// the template.
func (p *parsed) cause(err error) error {
	var limit *limitError
	var alias unknownAlias
	var function *functionError
	switch {
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &alias):
		return alias
	case errors.As(err, &function):
		return function
	}
	for _, known := range messages() {
		if found := known.pattern.FindStringSubmatch(err.Error()); found != nil && strings.Contains(p.text, found[1]) {
			return &ruleError{kind: known.kind, name: found[1]}
		}
	}
	return &ruleError{kind: otherRule}
}

// ruleError is a rule of text/template that a template violates at run time. name
// is an identifier in the template.
type ruleError struct{ kind, name string }

const (
	missingKey   = "map has no entry for key %q"
	missingField = "there is no field or key %q here"
	undefined    = "template %q is not defined"
	wrongNumber  = "wrong number of arguments for %s"
	wrongLiteral = "%s cannot be used here, it has the wrong type"
	noUse        = "%s: it cannot use its argument"
	otherRule    = "it uses a value that is not there, or has the wrong type"
)

func (e *ruleError) Error() string {
	if e.kind == otherRule {
		return e.kind
	}
	return fmt.Sprintf(e.kind, e.name)
}

// message is a message of text/template that contains a word of the template.
type message struct {
	pattern *regexp.Regexp
	kind    string
}

// messages are compiled when a template first fails, because few processes need
// them.
var messages = sync.OnceValue(func() []message {
	return []message{
		{regexp.MustCompile(`>: map has no entry for key "(\w+)"$`), missingKey},
		{regexp.MustCompile(`>: (?:can't evaluate field|nil data; no entry for key) "?(\w+)"?(?: in type [\w.*\[\]{} ]+)?$`), missingField},
		{regexp.MustCompile(`>: nil pointer evaluating [\w.*\[\]{} ]+\.(\w+)$`), missingField},
		{regexp.MustCompile(`>: template "([^"]+)" not defined$`), undefined},
		{regexp.MustCompile(`>: wrong number of args for (\w+): want (?:at least )?\d+ got \d+$`), wrongNumber},
		{regexp.MustCompile(`>: expected \w+; found (.+)$`), wrongLiteral},
		{regexp.MustCompile(`>: error calling (and|call|or): `), noUse},
	}
})

// certain reports whether the error occurs for all values. For a template written
// for the Secrets Provider it assumes so, as the Secrets Provider does. Other
// templates may compute with values, for which a placeholder is unsuitable.
func (p *parsed) certain(err error) bool {
	var limit *limitError
	var alias unknownAlias
	if errors.As(err, &limit) || errors.As(err, &alias) {
		return true
	}
	var rule *ruleError
	if errors.As(err, &rule) {
		switch rule.kind {
		case undefined, wrongNumber, wrongLiteral:
			return true
		case missingKey:
			if strings.Contains(p.text, ".SecretsMap."+rule.name) || p.ofParts {
				return true
			}
		}
	}
	var function *functionError
	if errors.As(err, &function) && function.always {
		return true
	}
	for name := range p.used {
		if !loadLibrary().plain[name] {
			return false
		}
	}
	return true
}

// position parses line and column from text/template's message, which begins with
// the template's name.
func (p *parsed) position(err error) (line, column int, ok bool) {
	rest, ok := strings.CutPrefix(err.Error(), "template: "+p.name+":")
	if !ok {
		return 0, 0, false
	}
	numbers := strings.SplitN(rest, ":", 3)
	if len(numbers) < 3 {
		return 0, 0, false
	}
	line, errLine := strconv.Atoi(numbers[0])
	column, errColumn := strconv.Atoi(numbers[1])
	return line, column, errLine == nil && errColumn == nil
}

// action returns the action at a position in the template, shortened.
func (p *parsed) action(line, column int) string {
	start := 0
	for range line - 1 {
		start += strings.IndexByte(p.text[start:], '\n') + 1
	}
	at := min(start+column, len(p.text))
	open := strings.LastIndex(p.text[:at], "{{")
	if open < 0 {
		return ""
	}
	action := p.text[open:]
	if end := strings.Index(action, "}}"); end >= 0 {
		action = action[:end+2]
	}
	return brief.Truncate(strings.Join(strings.Fields(action), " "), 80)
}
