package render

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	maxPattern      = 1000 // bytes of a regular expression
	maxInstructions = 5000 // of its program, which a few characters can make many
	matchWork       = 16   // a match, whatever its length
)

// expression is a regular expression and what it costs.
type expression struct {
	*regexp.Regexp
	instructions int
	// reach is how many bytes behind a match a search for it may read;
	// negative: any number.
	reach int
}

// work is what a search through size bytes takes: each byte may meet every
// instruction.
func (e expression) work(size int) int { return e.instructions*size + matchWork }

// each is what a further match in size bytes may take.
func (e expression) each(size int) int {
	if e.reach < 0 {
		return e.work(size)
	}
	return e.work(min(e.reach, size))
}

// compile spends the work of making a program of the pattern.
func (r *run) compile(pattern string) (expression, error) {
	const faulty failure = "its pattern is not a regular expression"
	if len(pattern) > maxPattern {
		return expression{}, failure("its pattern has more than 1000 bytes")
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return expression{}, faulty
	}
	e := expression{instructions: instructions(parsed), reach: reach(parsed, true)}
	if e.instructions > maxInstructions {
		return expression{}, failure("its pattern repeats too much")
	}
	r.work.call(e.instructions * stepWork)
	if e.Regexp, err = regexp.Compile(pattern); err != nil {
		return expression{}, faulty
	}
	return e, nil
}

// instructions is about how many a program of the expression has.
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

// reach is how many bytes behind a match a search may read before it knows that
// it is one; negative: any number. What is repeated without end may do so at
// the end of the expression only: there each repetition is a match.
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
