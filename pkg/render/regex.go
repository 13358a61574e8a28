package render

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// regexFunctions search text. An invalid pattern is an error.
func regexFunctions() []function {
	return []function{
		{name: "regexMatch", params: "text text", call: func(r *run, a args) any {
			re := r.compile(a.text(0))
			r.work.call(re.work(len(a.text(1))))
			return re.MatchString(a.text(1))
		}},
		{name: "regexFind", params: "text text", call: func(r *run, a args) any {
			re := r.compile(a.text(0))
			r.work.call(re.work(len(a.text(1))))
			at := re.FindStringIndex(a.text(1))
			if at == nil {
				panic(wrong(1, "does not match the pattern; test it with regexMatch"))
			}
			return a.text(1)[at[0]:at[1]]
		}},
		{name: "regexFindAll", params: "text text int", call: func(r *run, a args) any {
			re, _ := r.matches(a.text(0), a.text(1))
			list, _ := toList(re.FindAllString(a.text(1), most(a)))
			return list
		}},
		{name: "regexSplit", params: "text text int", call: func(r *run, a args) any {
			re, _ := r.matches(a.text(0), a.text(1))
			list, _ := toList(re.Split(a.text(1), most(a)))
			return list
		}},
		{name: "regexReplaceAll", params: "text text text", call: func(r *run, a args) any {
			s, repl := a.text(1), a.text(2)
			re, matches := r.matches(a.text(0), s)
			re.checkReferences(repl)
			fits(matches, len(repl))
			fits(strings.Count(repl, "$")+1, len(s))
			return re.ReplaceAllString(s, repl)
		}},
		{name: "regexReplaceAllLiteral", params: "text text text", call: func(r *run, a args) any {
			re, matches := r.matches(a.text(0), a.text(1))
			fits(matches, len(a.text(2)))
			return re.ReplaceAllLiteralString(a.text(1), a.text(2))
		}},
		{name: "regexQuoteMeta", params: "text", call: func(_ *run, a args) any { return regexp.QuoteMeta(a.text(0)) }},
	}
}

// most returns the last argument, a number of results, of which -1 means all.
func most(a args) int {
	n := a.int(2)
	if n < 1 && n != -1 {
		panic(wrong(2, "must be -1 or at least 1"))
	}
	return n
}

// matches counts the matches of a pattern in s. It spends the work of finding them
// twice.
func (r *run) matches(pattern, s string) (re expression, matches int) {
	re = r.compile(pattern)
	r.work.call(2 * re.work(len(s)))
	most := min(maxElements, maxCall/2/re.each(len(s)))
	matches = len(re.FindAllStringIndex(s, most+1))
	few(matches)
	r.work.call(2 * matches * re.each(len(s)))
	return re, matches
}

// reference is a reference to a group in a replacement, as regexp.Expand reads it.
var reference = lazyregexp.New(`\$(?:\$|(\w+)|\{(\w+)\})`)

// checkReferences panics if a replacement refers to a group that the pattern lacks, which
// would vanish.
func (e expression) checkReferences(repl string) {
	for _, found := range reference().FindAllStringSubmatch(repl, -1) {
		name := found[1] + found[2]
		n, err := strconv.Atoi(name)
		if name != "" && (err == nil && n > e.NumSubexp() || err != nil && e.SubexpIndex(name) < 0) {
			panic(wrong(2, "refers to a group that the pattern lacks; write ${1} before letters, and $$ for $"))
		}
	}
}

const (
	maxPattern      = 1000 // bytes of a regular expression
	maxInstructions = 5000 // of its program; a few characters can produce many
	matchWork       = 16   // for a match of any length
)

// expression is a regular expression and its costs.
type expression struct {
	*regexp.Regexp
	instructions int
	// reach bounds the bytes that a search may read beyond a match. Negative means
	// no bound.
	reach int
}

// work returns the cost of a search through size bytes. Each byte may meet every
// instruction.
func (e expression) work(size int) int { return e.instructions*size + matchWork }

// each returns the maximum cost of a further match in size bytes.
func (e expression) each(size int) int {
	if e.reach < 0 {
		return e.work(size)
	}
	return e.work(min(e.reach, size))
}

// compile compiles the pattern and spends the work for it.
func (r *run) compile(pattern string) expression {
	if len(pattern) > maxPattern {
		panic(wrong(0, "is a pattern of more than 1000 bytes"))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(wrong(0, "is not a regular expression"))
	}
	e := expression{instructions: instructions(parsed), reach: reach(parsed, true)}
	if e.instructions > maxInstructions {
		panic(wrong(0, "is a pattern that repeats too much"))
	}
	r.work.call(e.instructions * stepWork)
	if e.Regexp, err = regexp.Compile(pattern); err != nil {
		panic(wrong(0, "is not a regular expression"))
	}
	return e
}

// instructions estimates the number of instructions in the expression's program.
func instructions(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += 1 + instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpRepeat:
		n *= max(re.Min+1, re.Max)
	}
	return n
}

// reach returns how many bytes beyond a match a search may read before it confirms
// the match. Negative means no bound. Unbounded repetition is permitted only at the
// end of the expression, where each repetition is a match.
func reach(re *syntax.Regexp, last bool) (n int) {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) * utf8.UTFMax
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpCapture, syntax.OpQuest:
		return reach(re.Sub[0], last)
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		endless := re.Op != syntax.OpRepeat || re.Max < 0
		if n = reach(re.Sub[0], false); n < 0 || endless && !last {
			return -1
		}
		return n * max(re.Min+1, re.Max)
	}
	for i, sub := range re.Sub { // of a concatenation or an alternation
		m := reach(sub, last && (i == len(re.Sub)-1 || re.Op == syntax.OpAlternate))
		if m < 0 {
			return -1
		}
		n += m
	}
	return max(n, 1)
}
