// Package prose keeps the plain English of pages, settings, messages, help and comments.
package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// checked are the files that a user or a developer of the product reads.
// Other files of the same kind are plans, records and tests.
var checked = regexp.MustCompile(`^(?:[^/]+\.md|docs/(?:howto/)?[^/]+\.md|config/testdata/settings\.yaml|\.github/.*\.(?:md|yml)|deploy/.*\.(?:md|yaml|yml|tpl|txt)|(?:cmd|config|deploy|internal|keyset|pkg)/.*\.go)$`)

// texts are the YAML files whose values are prose; of others, only the comments are.
var texts = regexp.MustCompile(`^config/|/alerts\.yaml$`)

// exceptions are parts of sentences that may break a rule, each with its reason.
var exceptions = map[string]string{
	"' can't be a mapping":       "the genuine Conjur says so, and clients may compare it",
	">: (?:can't evaluate field": "Go's templates say so",
}

// TestPlainEnglish applies the rules to each sentence.
func TestPlainEnglish(t *testing.T) {
	const root = "../.."
	sentences, used := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		path, _ := filepath.Rel(root, file)
		if err != nil || !checked.MatchString(path) || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var problems []string
		for _, block := range blocks(t, path, text) {
			for _, s := range split(block) {
				sentences++
				for _, r := range brokenBy(s.text, s.words) {
					if part := exception(s.text); part != "" {
						used[part] = true
						continue
					}
					problems = append(problems, path+":"+strconv.Itoa(s.line)+": "+r.name+"\n\t"+s.text+"\n\texample: "+r.before+" -> "+r.after)
				}
			}
		}
		if len(problems) > 0 {
			t.Error(strings.Join(problems, "\n"))
		}
		return nil
	})
	if err != nil || sentences < 8000 {
		t.Errorf("read %d sentences only: %v", sentences, err)
	}
	for part := range exceptions {
		if !used[part] {
			t.Errorf("no sentence needs the exception %q", part)
		}
	}
}

func exception(text string) string {
	for part := range exceptions {
		if strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// A block is text without markup, and the line at which it starts.
type block struct {
	text string
	line int
}

// blocks returns the paragraphs, list items and cells of a file.
func blocks(t *testing.T, path string, text []byte) (found []block) {
	switch filepath.Ext(path) {
	case ".go":
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			var lines []string
			for _, c := range group.List {
				lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))
			}
			found = append(found, markdown(strings.Join(lines, "\n"), set.Position(group.Pos()).Line)...)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if ok {
				found = append(found, markdown(text, set.Position(n.Pos()).Line)...)
			}
			return !ok
		})
	case ".yaml", ".yml", ".tpl":
		found = markdown(comments(string(text)), 1)
		if !texts.MatchString(path) {
			break
		}
		var document yaml.Node
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		nodes := []*yaml.Node{&document}
		for ; len(nodes) > 0; nodes = nodes[1:] {
			found = append(found, markdown(nodes[0].Value, nodes[0].Line)...)
			nodes = append(nodes, nodes[0].Content...)
		}
	default:
		found = markdown(string(text), 1)
	}
	return found
}

// commented matches a comment of a line, or the code of a line without one.
var commented = regexp.MustCompile(`(?m)^[ \t]*#+ ?(.*)$|^.*[ \t]# (.*)$|^.+$`)

// comments returns the comments of YAML and of templates, each in its line. Comments
// beside code, and the rows of a table, are cells.
func comments(text string) string {
	return commented.ReplaceAllStringFunc(text, func(line string) string {
		part := commented.FindStringSubmatch(line)
		if part[2] != "" || strings.HasPrefix(part[1], "  ") {
			return "|" + part[1] + part[2]
		}
		return part[1]
	})
}

// literal returns the text of a string, wherever it goes to. In a concatenation,
// any other operand counts as a word.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		return left + right, e.Op == token.ADD && (isLeft || isRight)
	}
	return "X", false
}

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```$|<!--.*?-->")
	noText = regexp.MustCompile(`(?m)^(?: {4}|\t|#|go:|\|[-|]+\|$).*$`)
	quoted = regexp.MustCompile("(?s)`[^`]*`|\\{\\{.*?\\}\\}")
	plain  = regexp.MustCompile("[a-z]{3}.* .*[a-z]{3}")
	target = regexp.MustCompile(`\]\([^)]*\)`)
	starts = regexp.MustCompile(`(?m)^\s*(?:[-*]|\d+\.)\s|^\s*$|[|→]`)
	ends   = regexp.MustCompile("[.!?;][\"')]*\\s+[^\\s]|:\\s+[\"'(*]*[A-Z]")
)

// markdown returns the blocks of a text without code, headings and addresses.
func markdown(text string, line int) (found []block) {
	// A removed part leaves its lines, so that the rest keeps its place.
	without := func(part *regexp.Regexp, by string) {
		text = part.ReplaceAllStringFunc(text, func(s string) string { return by + strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	without(fenced, "")
	without(noText, "")
	without(quoted, "X")
	without(target, "")
	from := 0
	for _, next := range append(starts.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		found = append(found, block{text[from:next[0]], line + strings.Count(text[:from], "\n")})
		from = next[1]
	}
	return found
}

// A sentence is what the rules apply to.
type sentence struct {
	text        string
	words, line int
}

// split returns the sentences of a block that have words.
func split(b block) (sentences []sentence) {
	from := 0
	for _, next := range append(ends.FindAllStringIndex(b.text, -1), []int{0, len(b.text) + 1}) {
		to := next[1] - 1
		part := strings.TrimLeft(b.text[from:to], " \n")
		if words := strings.Fields(part); plain.MatchString(part) {
			sentences = append(sentences, sentence{strings.Join(words, " "), len(words), b.line + strings.Count(b.text[:to-len(part)], "\n")})
		}
		from = to
	}
	return sentences
}
