// Package definitions reads an operator's definitions of targets: lists of secrets, a
// Secret's conjur-map and annotations, paths, modes, and workloads.
package definitions

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/targets"
)

// maxVariableName is the maximum number of characters in the last segment of a variable's
// id, as in the Secrets Provider.
const maxVariableName = 126

// maxVariable is the maximum number of bytes of an id in a URL. A server may not answer a
// longer request line at all.
const maxVariable = 7000

// ParseEntries reads a group's list of secrets, in the syntax of the annotation
// conjur.org/conjur-secrets.{group}. The list is a YAML list of ids or maps. An id "a/b"
// has the alias "b". In a map, the first key is the alias ("alias: a/b"). The map may
// also contain a content-type, and the path and the mode of a file. A single * stands for
// all variables.
//
// An id may be written in full, "account:variable:a/b". If account is not empty, it must
// be the same account. The error joins the problems of all items and names their lines in
// text. A warning describes an item that is interpreted differently from its text.
func ParseEntries(text, account string) (entries []targets.Entry, warnings []string, err error) {
	if strings.TrimSpace(text) == "*" {
		return []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentText}}, nil, nil
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, next yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil, errors.New("the list of secrets is empty")
	case err != nil:
		return nil, nil, fmt.Errorf("not valid YAML: %w", YAMLError([]byte(text), err))
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("more than one YAML document; write one list")
	}
	return ParseEntryList(doc.Content[0], account)
}

// ParseEntryList is ParseEntries for a list in a larger YAML document. Its line numbers
// are those of that document.
func ParseEntryList(list *yaml.Node, account string) (entries []targets.Entry, warnings []string, err error) {
	list = Resolve(list)
	if list.Kind == yaml.ScalarNode && list.Value == "*" {
		return []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentText}}, nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, nil, fmt.Errorf("line %d: a list of secrets is wanted, each \"- id\" or \"- alias: id\", or a single *, not %s", list.Line, Describe(list))
	}
	if len(list.Content) == 0 {
		return nil, nil, errors.New("the list of secrets is empty")
	}
	p := entryParser{account: account, noun: "alias", all: `the item - "*"`, lines: map[string]int{}}
	for _, item := range list.Content {
		p.line = item.Line
		p.item(Resolve(item))
	}
	return p.entries, p.warnings, errors.Join(p.errs...)
}

// WithPolicyPath adds a group's policy path as a prefix to the entries' variables, joined
// by exactly one slash. A path without a segment changes nothing.
func WithPolicyPath(entries []targets.Entry, path string) []targets.Entry {
	path = strings.Trim(path, "/")
	if path == "" {
		return entries
	}
	prefixed := make([]targets.Entry, len(entries))
	for i, e := range entries {
		e.Variable = path + "/" + strings.TrimLeft(e.Variable, "/")
		prefixed[i] = e
	}
	return prefixed
}

type entryParser struct {
	account  string
	noun     string         // the term for an alias
	all      string         // the notation for all variables
	line     int            // of the current item; 0: the item has no text
	lines    map[string]int // alias → the line that first used it
	entries  []targets.Entry
	warnings []string
	errs     []error
	faulty   []string // of a conjur-map: the data keys of faulty items
	unsure   bool     // of a conjur-map: faulty may be incomplete
}

func (p *entryParser) fail(format string, args ...any) {
	p.errs = append(p.errs, errors.New(p.at()+fmt.Sprintf(format, clipped(args)...)))
}

func (p *entryParser) warn(format string, args ...any) {
	p.warnings = append(p.warnings, p.at()+fmt.Sprintf(format, clipped(args)...))
}

func (p *entryParser) at() string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", p.line)
}

// clipped shortens the texts among the arguments of a message, because user input may
// have any length.
func clipped(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = brief.Input(text)
		}
	}
	return args
}

// variable removes account and kind from an id that is written in full. A later colon, or
// one after a slash, belongs to the id.
func (p *entryParser) variable(text string) string {
	account, id, ok := strings.Cut(text, ":variable:")
	if !ok || account == "" || strings.ContainsAny(account, "/:") {
		return text
	}
	if p.account != "" && account != p.account {
		p.fail("%q is of account %q, but the account in use is %q", text, account, p.account)
	}
	return id
}

// add checks an entry and keeps it, unless it is faulty.
func (p *entryParser) add(e targets.Entry) {
	before := len(p.errs)
	switch {
	case e.Variable == "":
		p.fail("the %s %q has no variable", p.noun, e.Alias)
	case strings.HasSuffix(e.Variable, "/"):
		p.fail("the variable %q must not end in a slash", e.Variable)
	case e.Alias == "":
		p.fail("the %s of %q is empty", p.noun, e.Variable)
	case e.Variable == "." || e.Variable == ".." || !utf8.ValidString(e.Variable) || strings.ContainsFunc(e.Variable, unicode.IsControl):
		p.fail("%q is not the id of a variable: it has control characters, or is a dot alone", e.Variable)
	case len(url.PathEscape(e.Variable)) > maxVariable:
		p.fail("the variable %q is too long for a request: it takes %d bytes in a URL, and at most %d are sent",
			e.Variable, len(url.PathEscape(e.Variable)), maxVariable)
	}
	if e.IsSet() && (e.Variable == "*" || strings.HasSuffix(e.Variable, "/*")) {
		p.fail("%q names all variables, but a set is one; write its id", e.Alias)
	}
	if name := e.Variable[strings.LastIndex(e.Variable, "/")+1:]; utf8.RuneCountInString(name) > maxVariableName {
		p.fail("the name %q is longer than %d characters", name, maxVariableName)
	}
	if first, ok := p.lines[e.Alias]; ok && e.Alias != "" {
		p.fail("the %s %q is already used on line %d; give one of the two another name", p.noun, e.Alias, first)
	}
	if len(p.errs) > before {
		return
	}
	if e.Variable == "*" && e.Alias != "*" {
		p.warn("%q is one variable called *; to get all variables write %s", e.Alias, p.all)
	}
	p.lines[e.Alias] = p.line
	p.entries = append(p.entries, e)
}

// Resolve follows a YAML alias to its node.
func Resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func keyName(key *yaml.Node) string {
	if key.Kind != yaml.ScalarNode {
		return "a key"
	}
	return fmt.Sprintf("%q", key.Value)
}

// Describe describes a node for an error: a map, a list, nothing, or its text in quotes.
func Describe(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a map"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", brief.Input(node.Value))
}

// tabMessage matches messages of the YAML library about a tab, and finds their line.
var tabMessage = lazyregexp.New(`^(?:line (\d+): )?(?:found character that cannot start any token|found a tab character)`)

// YAMLError converts an error of the YAML library for text into one for people. It begins
// with the line, if known.
func YAMLError(text []byte, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if found := tabMessage().FindStringSubmatch(message); found != nil {
		// The library returns the line of the tab, or an earlier line.
		from, _ := strconv.Atoi(found[1])
		for i, line := range strings.Split(string(text), "\n") {
			if i+1 >= from && i <= max(from, 1) && strings.HasPrefix(strings.TrimLeft(line, " "), "\t") && strings.TrimSpace(line) != "" {
				return fmt.Errorf("line %d: a tab begins the line; YAML is indented by spaces alone", i+1)
			}
		}
	}
	return errors.New(message)
}
