package render

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxPattern is how many bytes a regular expression may have.
const maxPattern = 1000

// regexFunctions are sprig's, with and without "must" alike: a faulty pattern
// is an error.
func (r *run) regexFunctions() map[string]any {
	funcs := map[string]any{
		"Match": func(pattern, s string) (bool, error) {
			re, err := r.compile(pattern, s)
			return err == nil && re.MatchString(s), err
		},
		"Find": func(pattern, s string) (string, error) {
			re, err := r.compile(pattern, s)
			if err != nil {
				return "", err
			}
			return re.FindString(s), nil
		},
		"FindAll": func(pattern, s string, n int) ([]string, error) {
			re, err := r.compile(pattern, s)
			if err != nil {
				return nil, err
			}
			few(len(re.FindAllStringIndex(s, maxElements+1)))
			return re.FindAllString(s, n), nil
		},
		"Split": func(pattern, s string, n int) ([]string, error) {
			re, err := r.compile(pattern, s)
			if err != nil {
				return nil, err
			}
			few(len(re.FindAllStringIndex(s, maxElements+1)))
			return re.Split(s, n), nil
		},
		"ReplaceAll": func(pattern, s, repl string) (string, error) {
			re, err := r.compile(pattern, s)
			if err != nil {
				return "", err
			}
			few(len(re.FindAllStringIndex(s, maxElements+1)))
			fits(len(re.FindAllStringIndex(s, -1)), len(repl))
			fits(strings.Count(repl, "$")+1, len(s))
			return re.ReplaceAllString(s, repl), nil
		},
		"ReplaceAllLiteral": func(pattern, s, repl string) (string, error) {
			re, err := r.compile(pattern, s)
			if err != nil {
				return "", err
			}
			few(len(re.FindAllStringIndex(s, maxElements+1)))
			fits(len(re.FindAllStringIndex(s, -1)), len(repl))
			return re.ReplaceAllLiteralString(s, repl), nil
		},
	}
	named := map[string]any{}
	for name, fn := range funcs {
		named["regex"+name], named["mustRegex"+name] = fn, fn
	}
	return named
}

// compile spends the work of matching s: the instructions of the pattern's
// program, which a few characters can make many, for each byte.
func (r *run) compile(pattern, s string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, failure("its pattern has more than 1000 bytes")
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, failure("its pattern is not a regular expression")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, failure("its pattern is not a regular expression")
	}
	r.work.spend(len(program.Inst) * (len(s)/argumentPart + stepWork))
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failure("its pattern is not a regular expression")
	}
	return re, nil
}
