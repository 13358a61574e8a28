package render

import (
	"encoding/base32"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// ownFunctions returns functions that sprig lacks or that guard alone cannot make
// safe. In sprig, a small argument of some gives a large result, the result of
// others has no fixed order, and others hide an error.
func (r *run) ownFunctions(sprigs map[string]any) map[string]any {
	toStrings := sprigs["toStrings"].(func(any) []string)
	wrapWith := sprigs["wrapWith"].(func(int, string, string) string)
	funcs := map[string]any{
		"secret": r.secret, "versions": r.versions,
		"b64enc": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"b64dec": func(s string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(s)
			return decoded(b, err, "its argument is not base64")
		},
		"b32dec": func(s string) (string, error) {
			b, err := base32.StdEncoding.DecodeString(s)
			return decoded(b, err, "its argument is not base32")
		},
		"fail": func(string) (string, error) { return "", failure("the template gives up") },

		"eq": equal, "ne": notEqual, "lt": less, "le": lessOrEqual, "gt": greater, "ge": greaterOrEqual,
		"index": index, "printf": printf, "print": printAll, "println": printLine,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,

		"repeat":   repeat,
		"indent":   indent,
		"nindent":  func(n int, s string) string { return "\n" + indent(n, s) },
		"replace":  replace,
		"join":     func(sep string, list any) string { return join(sep, toStrings(list)) },
		"wrap":     func(width int, s string) string { return wrap(wrapWith, width, "\n", s) },
		"wrapWith": func(width int, sep, s string) string { return wrap(wrapWith, width, sep, s) },

		"until":     func(n int) []int { return untilStep(0, n, sign(n)) },
		"untilStep": untilStep,
		"seq":       seq,
		"split":     func(sep, s string) map[string]string { return numbered(split(sep, -1, s)) },
		"splitList": func(sep, s string) []string { return split(sep, -1, s) },
		"splitn":    func(sep string, n int, s string) map[string]string { return numbered(split(sep, n, s)) },

		"keys":   keys,
		"values": valuesOf,
	}
	maps.Copy(funcs, r.costly(sprigs))
	maps.Copy(funcs, r.regexFunctions())
	return funcs
}

// costly returns the sprig functions whose work exceeds the size of their arguments
// and results.
func (r *run) costly(sprigs map[string]any) map[string]any {
	funcs := map[string]any{}
	for _, name := range []string{"uniq", "mustUniq"} {
		fn := sprigs["mustUniq"].(func(any) ([]any, error))
		funcs[name] = func(list any) ([]any, error) {
			r.pairs(list, list)
			return fn(list)
		}
	}
	for _, name := range []string{"without", "mustWithout"} {
		fn := sprigs["mustWithout"].(func(any, ...any) ([]any, error))
		funcs[name] = func(list any, omit ...any) ([]any, error) {
			r.pairs(list, omit)
			return fn(list, omit...)
		}
	}
	for _, name := range []string{"trimAll", "trimall"} {
		funcs[name] = func(cutset, s string) string {
			r.work.call(len(cutset) * len(s) / argumentPart)
			return strings.Trim(s, cutset)
		}
	}
	fromJSON := sprigs["mustFromJson"].(func(string) (any, error))
	funcs["mustFromJson"] = func(s string) (any, error) {
		r.work.spend(elementWork * len(s)) // the shortest elements have one or two bytes
		v, err := fromJSON(s)
		if err != nil {
			return nil, failure("its argument is not JSON")
		}
		return v, nil
	}
	funcs["fromJson"] = func(s string) any {
		r.work.spend(elementWork * len(s))
		v, _ := fromJSON(s)
		return v
	}
	return funcs
}

// pairs spends the work of comparing each element of a list with each element of
// others.
func (r *run) pairs(list, others any) {
	v, w := reflect.ValueOf(list), reflect.ValueOf(others)
	if v.Kind() == reflect.Slice && w.Kind() == reflect.Slice {
		r.work.call(v.Len()*w.Len()*pairWork + w.Len()*size(v, true, maxResult)/argumentPart)
	}
}

func decoded(b []byte, err error, why failure) (string, error) {
	if err != nil {
		return "", why
	}
	return string(b), nil
}

func repeat(n int, s string) string {
	fits(n, len(s))
	return strings.Repeat(s, n)
}

func indent(n int, s string) string {
	fits(n, strings.Count(s, "\n")+1)
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}

func replace(old, new, s string) string {
	fits(strings.Count(s, old), len(new))
	return strings.ReplaceAll(s, old, new)
}

func join(sep string, list []string) string {
	fits(len(list), len(sep))
	return strings.Join(list, sep)
}

func wrap(fn func(int, string, string) string, width int, sep, s string) string {
	fits(len(s)/max(width, 1)+1, len(sep))
	return fn(width, sep, s)
}

func split(sep string, n int, s string) []string {
	few(strings.Count(s, sep))
	return strings.SplitN(s, sep, n)
}

// numbered converts a list to a map with the keys _0, _1 and so on.
func numbered(list []string) map[string]string {
	m := make(map[string]string, len(list))
	for i, s := range list {
		m["_"+strconv.Itoa(i)] = s
	}
	return m
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func untilStep(start, stop, step int) []int {
	list := []int{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		list = append(list, i)
		few(len(list))
	}
	return list
}

// seq takes stop, or start and stop, or start, step and stop.
func seq(params ...int) string {
	var list []int
	switch len(params) {
	case 1:
		dir := sign(params[0] - 1)
		list = untilStep(1, params[0]+dir, dir)
	case 2:
		dir := sign(params[1] - params[0])
		list = untilStep(params[0], params[1]+dir, dir)
	case 3:
		list = untilStep(params[0], params[2]+sign(params[2]-params[0]), params[1])
	}
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// keys lists the keys of each map in order. The order of sprig's result varies.
func keys(dicts ...map[string]any) []string {
	all := []string{}
	for _, dict := range dicts {
		all = append(all, slices.Sorted(maps.Keys(dict))...)
	}
	return all
}

// valuesOf lists a map's values in the order of their keys.
func valuesOf(dict map[string]any) []any {
	all := make([]any, 0, len(dict))
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		all = append(all, dict[key])
	}
	return all
}
