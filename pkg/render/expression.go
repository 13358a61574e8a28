package render

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

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
