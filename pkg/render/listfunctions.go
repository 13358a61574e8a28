package render

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// listFunctions make, read and change lists. The result is a new list.
func listFunctions() []function {
	return []function{
		{name: "list", params: "any...", shallow: true, call: func(_ *run, a args) any { return []any(a) }},
		{name: "first", params: "list", shallow: true, call: func(_ *run, a args) any { return some(a)[0] }},
		{name: "last", params: "list", shallow: true, call: func(_ *run, a args) any { list := some(a); return list[len(list)-1] }},
		{name: "rest", params: "list", shallow: true, call: func(_ *run, a args) any { return some(a)[1:] }},
		{name: "initial", params: "list", shallow: true, call: func(_ *run, a args) any { list := some(a); return list[:len(list)-1] }},
		{name: "append", params: "list any", shallow: true, call: func(_ *run, a args) any { return append(slices.Clone(a.list(0)), a[1]) }},
		{name: "prepend", params: "list any", shallow: true, call: func(_ *run, a args) any { return append([]any{a[1]}, a.list(0)...) }},
		{name: "concat", params: "list...", shallow: true, call: func(_ *run, a args) any {
			all := []any{}
			for i := range a {
				all = append(all, a.list(i)...)
			}
			return all
		}},
		{name: "reverse", params: "list", shallow: true, call: func(_ *run, a args) any {
			list := slices.Clone(a.list(0))
			slices.Reverse(list)
			return list
		}},
		{name: "has", params: "any list", call: func(r *run, a args) any {
			return slices.ContainsFunc(a.list(1), func(v any) bool { return same(v, a[0]) })
		}},
		{name: "uniq", params: "list", most: mostWalked, call: func(r *run, a args) any {
			r.pairs(a.list(0), a.list(0))
			list := []any{}
			for _, v := range a.list(0) {
				if !slices.ContainsFunc(list, func(w any) bool { return same(v, w) }) {
					list = append(list, v)
				}
			}
			return list
		}},
		{name: "without", params: "list any...", most: mostWalked, call: func(r *run, a args) any {
			r.pairs(a.list(0), a[1:])
			return slices.DeleteFunc(slices.Clone(a.list(0)), func(v any) bool {
				return slices.ContainsFunc(a[1:], func(w any) bool { return same(v, w) })
			})
		}},
		{name: "sortAlpha", params: "list", call: func(_ *run, a args) any {
			sorted := slices.Sorted(slices.Values(elements(a, 0)))
			list, _ := toList(sorted)
			return list
		}},
		{name: "join", params: "bytes list", call: func(_ *run, a args) any {
			list := elements(a, 1)
			fits(len(list), len(a.text(0)))
			return strings.Join(list, a.text(0))
		}},
		{name: "splitList", params: "text text", call: func(_ *run, a args) any {
			list, _ := toList(split(a.text(0), -1, a.text(1)))
			return list
		}},
		{name: "split", params: "text text", call: func(_ *run, a args) any { return numbered(split(a.text(0), -1, a.text(1))) }},
		{name: "splitn", params: "text int text", call: func(_ *run, a args) any {
			if a.int(1) < 1 {
				panic(wrong(1, "is less than 1"))
			}
			return numbered(split(a.text(0), a.int(1), a.text(2)))
		}},
		{name: "until", params: "int", call: func(_ *run, a args) any {
			if a.int(0) < 0 {
				return untilStep(0, a.int(0), -1)
			}
			return untilStep(0, a.int(0), 1)
		}},
		{name: "untilStep", params: "int int int", call: func(_ *run, a args) any {
			if a.int(2) == 0 {
				panic(wrong(2, "is zero"))
			}
			return untilStep(a.int(0), a.int(1), a.int(2))
		}},
	}
}

// some returns the list of the first argument, which must have an element.
func some(a args) []any {
	if len(a.list(0)) == 0 {
		panic(wrong(0, "is an empty list"))
	}
	return a.list(0)
}

// elements returns the elements of a list as text.
func elements(a args, i int) []string {
	list := make([]string, len(a.list(i)))
	for j, v := range a.list(i) {
		text, ok := scalar(v)
		if !ok {
			panic(wrong(i, "has an element that must be text, a number or a Boolean, not "+typeName(v)))
		}
		list[j] = text
	}
	return list
}

// pairs spends the work of comparing each element of a list with each of others.
func (r *run) pairs(list, others []any) {
	r.work.call(len(list)*len(others)*pairWork + len(others)*size(reflect.ValueOf(list), true, maxResult)/argumentPart)
}

// same reports whether two values are equal: numbers by their value, all else with all
// that they contain.
func same(a, b any) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	return reflect.DeepEqual(a, b)
}

func split(sep string, n int, s string) []string {
	few(strings.Count(s, sep))
	return strings.SplitN(s, sep, n)
}

// numbered converts a list to a map with the keys _0, _1 and so on.
func numbered(list []string) map[string]any {
	m := make(map[string]any, len(list))
	for i, s := range list {
		m["_"+strconv.Itoa(i)] = s
	}
	return m
}

func untilStep(start, stop, step int) []any {
	list := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		list = append(list, i)
		few(len(list))
	}
	return list
}
