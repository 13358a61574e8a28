package render

import "strings"

// regexFunctions returns sprig's functions. The variants with and without "must"
// are the same: an invalid pattern is an error.
func (r *run) regexFunctions() map[string]any {
	funcs := map[string]any{
		"Match": func(pattern, s string) (bool, error) {
			re, err := r.compile(pattern)
			if err != nil {
				return false, err
			}
			r.work.call(re.work(len(s)))
			return re.MatchString(s), nil
		},
		"Find": func(pattern, s string) (string, error) {
			re, err := r.compile(pattern)
			if err != nil {
				return "", err
			}
			r.work.call(re.work(len(s)))
			return re.FindString(s), nil
		},
		"FindAll": func(pattern, s string, n int) ([]string, error) {
			re, _, err := r.matches(pattern, s)
			if err != nil {
				return nil, err
			}
			return re.FindAllString(s, n), nil
		},
		"Split": func(pattern, s string, n int) ([]string, error) {
			re, _, err := r.matches(pattern, s)
			if err != nil {
				return nil, err
			}
			return re.Split(s, n), nil
		},
		"ReplaceAll": func(pattern, s, repl string) (string, error) {
			re, matches, err := r.matches(pattern, s)
			if err != nil {
				return "", err
			}
			fits(matches, len(repl))
			fits(strings.Count(repl, "$")+1, len(s))
			return re.ReplaceAllString(s, repl), nil
		},
		"ReplaceAllLiteral": func(pattern, s, repl string) (string, error) {
			re, matches, err := r.matches(pattern, s)
			if err != nil {
				return "", err
			}
			fits(matches, len(repl))
			return re.ReplaceAllLiteralString(s, repl), nil
		},
	}
	named := map[string]any{}
	for name, fn := range funcs {
		named["regex"+name], named["mustRegex"+name] = fn, fn
	}
	return named
}

// matches counts the matches of a pattern in s. It spends the work of finding them
// twice.
func (r *run) matches(pattern, s string) (re expression, matches int, err error) {
	if re, err = r.compile(pattern); err != nil {
		return re, 0, err
	}
	r.work.call(2 * re.work(len(s)))
	most := min(maxElements, maxCall/2/re.each(len(s)))
	matches = len(re.FindAllStringIndex(s, most+1))
	few(matches)
	r.work.call(2 * matches * re.each(len(s)))
	return re, matches, nil
}
