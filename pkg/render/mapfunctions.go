package render

import (
	"maps"
	"reflect"
	"slices"
)

const noSuchKey = "is not a key of the map"

// mapFunctions make, read and change maps. A key that a map lacks is an error.
func mapFunctions() []function {
	return []function{
		{name: "dict", params: "any...", shallow: true, call: func(_ *run, a args) any { return dict(a) }},
		{name: "get", params: "dict text", shallow: true, call: func(_ *run, a args) any {
			v, ok := a.dict(0)[a.text(1)]
			if !ok {
				panic(wrong(1, noSuchKey+"; use dig for a default"))
			}
			return v
		}},
		{name: "dig", params: "text any any...", shallow: true, call: func(_ *run, a args) any { return dig(a) }},
		{name: "hasKey", params: "dict text", shallow: true, call: func(_ *run, a args) any {
			_, ok := a.dict(0)[a.text(1)]
			return ok
		}},
		{name: "set", params: "dict text any", call: func(_ *run, a args) any { a.dict(0)[a.text(1)] = a[2]; return a[0] }},
		{name: "unset", params: "dict text", shallow: true, call: func(_ *run, a args) any { delete(a.dict(0), a.text(1)); return a[0] }},
		{name: "keys", params: "dict dict...", shallow: true, call: func(_ *run, a args) any {
			all := []any{}
			for i := range a {
				for _, key := range slices.Sorted(maps.Keys(a.dict(i))) {
					all = append(all, key)
				}
			}
			return all
		}},
		{name: "values", params: "dict", shallow: true, call: func(_ *run, a args) any {
			all := []any{}
			for _, key := range slices.Sorted(maps.Keys(a.dict(0))) {
				all = append(all, a.dict(0)[key])
			}
			return all
		}},
		{name: "pick", params: "dict text...", shallow: true, call: func(_ *run, a args) any {
			picked := map[string]any{}
			for i := range a[1:] {
				v, ok := a.dict(0)[a.text(i+1)]
				if !ok {
					panic(wrong(i+1, noSuchKey))
				}
				picked[a.text(i+1)] = v
			}
			return picked
		}},
		{name: "omit", params: "dict text...", shallow: true, call: func(_ *run, a args) any {
			kept := maps.Clone(a.dict(0))
			for i := range a[1:] {
				delete(kept, a.text(i+1))
			}
			return kept
		}},
		{name: "merge", params: "dict dict...", most: mostWalked, call: func(_ *run, a args) any { return merge(a, false) }},
		{name: "mergeOverwrite", params: "dict dict...", most: mostWalked, call: func(_ *run, a args) any { return merge(a, true) }},
		{name: "deepCopy", params: "any", most: mostWalked, call: func(_ *run, a args) any { return deepCopy(a[0]) }},
	}
}

func dict(a args) map[string]any {
	if len(a)%2 != 0 {
		panic(failure("the last key has no value"))
	}
	m := make(map[string]any, len(a)/2)
	for i := 0; i < len(a); i += 2 {
		key, ok := a[i].(string)
		if !ok {
			panic(wrong(i, "must be text, not "+typeName(a[i])))
		}
		if _, twice := m[key]; twice {
			panic(wrong(i, "is a key that is there twice"))
		}
		m[key] = a[i+1]
	}
	return m
}

// dig takes the keys of a path, a default, and a map.
func dig(a args) any {
	last := len(a) - 1
	if last < 2 {
		panic(failure("it takes keys, a default and a map"))
	}
	v, ok := a[last], true
	for i := range last - 1 {
		key, text := a[i].(string)
		if !text {
			panic(wrong(i, "must be text, not "+typeName(a[i])))
		}
		m, isMap := v.(map[string]any)
		if !isMap {
			panic(wrong(i, "is a key of "+typeName(v)+", which must be a map"))
		}
		if v, ok = m[key]; !ok {
			return a[last-1]
		}
	}
	return v
}

// merge adds the entries of the other maps to the first. An entry that is there stays,
// whatever its value, unless overwrite is true. Maps below the same key are merged too.
func merge(a args, overwrite bool) any {
	for i := range a[1:] {
		mergeInto(a.dict(0), a.dict(i+1), overwrite)
	}
	return a[0]
}

func mergeInto(into, from map[string]any, overwrite bool) {
	for key, v := range from {
		old, taken := into[key]
		oldMap, isMap := old.(map[string]any)
		newMap, also := v.(map[string]any)
		switch {
		case taken && isMap && also:
			mergeInto(oldMap, newMap, overwrite)
		case !taken || overwrite:
			into[key] = deepCopy(v)
		}
	}
}

// deepCopy copies maps and lists with all that they contain.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, value := range v {
			copied[key] = deepCopy(value)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, value := range v {
			copied[i] = deepCopy(value)
		}
		return copied
	}
	return v
}

// empty reports whether a value is nothing, empty text, or an empty list or map. A number
// and a Boolean are never empty.
func empty(v any) bool {
	if v == nil {
		return true
	}
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return value.Len() == 0
	}
	return false
}

// otherFunctions are those of conditions, JSON and URLs.
func otherFunctions() []function {
	encode := func(name string, html, pretty bool) function {
		return function{name: name, params: "any", most: mostWalked, call: func(_ *run, a args) any { return toJSON(a[0], html, pretty) }}
	}
	return []function{
		{name: "default", params: "any any", most: mostCopied, shallow: true, call: func(_ *run, a args) any {
			if empty(a[1]) {
				return a[0]
			}
			return a[1]
		}},
		{name: "coalesce", params: "any any...", shallow: true, call: func(_ *run, a args) any {
			for _, v := range a {
				if !empty(v) {
					return v
				}
			}
			panic(failure("all arguments are empty"))
		}},
		{name: "empty", params: "any", most: mostCopied, shallow: true, call: func(_ *run, a args) any { return empty(a[0]) }},
		{name: "ternary", params: "any any bool", most: mostCopied, shallow: true, call: func(_ *run, a args) any {
			if a[2].(bool) {
				return a[0]
			}
			return a[1]
		}},
		{name: "fail", params: "bytes", call: func(*run, args) any { panic(failure("the template gives up")) }},
		{name: "deepEqual", params: "any any", most: mostWalked, call: func(_ *run, a args) any { return same(a[0], a[1]) }},
		{name: "kindIs", params: "text any", shallow: true, call: kindIs},
		encode("toJson", true, false),
		encode("toRawJson", false, false),
		encode("toPrettyJson", true, true),
		{name: "fromJson", params: "text", most: mostParsed, call: fromJSON},
		{name: "urlParse", params: "text", most: mostParsed, call: parseURL},
	}
}

// kindIs compares the kind of a value with a name.
func kindIs(_ *run, a args) any {
	kind := "number"
	switch value := reflect.ValueOf(a[1]); value.Kind() {
	case reflect.Invalid:
		kind = "invalid"
	case reflect.String:
		kind = "string"
	case reflect.Bool:
		kind = "bool"
	case reflect.Slice:
		kind = "slice"
	case reflect.Map:
		kind = "map"
	case reflect.Struct:
		if _, ok := a[1].(jsonNumber); !ok {
			kind = "struct"
		}
	}
	if !slices.Contains([]string{"invalid", "string", "bool", "number", "slice", "map", "struct"}, a.text(0)) {
		panic(wrong(0, "must be string, number, bool, slice, map, struct or invalid"))
	}
	return kind == a.text(0)
}
