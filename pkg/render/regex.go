package render

import (
	"regexp"
	"strconv"
	"strings"
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
var reference = regexp.MustCompile(`\$(?:\$|(\w+)|\{(\w+)\})`)

// checkReferences panics if a replacement refers to a group that the pattern lacks, which
// would vanish.
func (e expression) checkReferences(repl string) {
	for _, found := range reference.FindAllStringSubmatch(repl, -1) {
		name := found[1] + found[2]
		n, err := strconv.Atoi(name)
		if name != "" && (err == nil && n > e.NumSubexp() || err != nil && e.SubexpIndex(name) < 0) {
			panic(wrong(2, "refers to a group that the pattern lacks; write ${1} before letters, and $$ for $"))
		}
	}
}
