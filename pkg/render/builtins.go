package render

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// builtins replace text/template's functions with the same names. The originals accept
// numbers that cause unlimited padding, and are not counted. They cut letters, give an
// empty value for a missing map key, and print their faults into the result. Otherwise the
// replacements do the same. The functions and, or and call stay as they are.
func builtins() []function {
	compared := func(name string, is func(order int) bool) function {
		return function{name: name, params: "any any", most: mostCopied, call: func(_ *run, a args) any {
			order, ok := compare(a[0], a[1])
			if !ok {
				panic(differ(a[0], a[1]))
			}
			return is(order)
		}}
	}
	return []function{
		{name: "eq", params: "any any any...", most: mostCopied, call: func(_ *run, a args) any {
			for _, other := range a[1:] {
				if equal(a[0], other) {
					return true
				}
			}
			return false
		}},
		{name: "ne", params: "any any", most: mostCopied, call: func(_ *run, a args) any { return !equal(a[0], a[1]) }},
		compared("lt", func(order int) bool { return order < 0 }),
		compared("le", func(order int) bool { return order <= 0 }),
		compared("gt", func(order int) bool { return order > 0 }),
		compared("ge", func(order int) bool { return order >= 0 }),
		{name: "not", params: "any", most: mostCopied, shallow: true, call: func(_ *run, a args) any {
			truth, _ := template.IsTrue(condition(a[0]))
			return !truth
		}},
		{name: "len", params: "any", most: mostCopied, shallow: true, call: length},
		{name: "index", params: "any any...", shallow: true, call: index},
		{name: "slice", params: "any int...", most: mostCopied, shallow: true, call: slice},
		{name: "print", params: "printed...", call: func(_ *run, a args) any { return fmt.Sprint(a...) }},
		{name: "println", params: "printed...", call: func(_ *run, a args) any { return fmt.Sprintln(a...) }},
		{name: "printf", params: "bytes any...", most: mostEscaped, call: func(_ *run, a args) any { return printf(a) }},
		{name: "html", params: "printed printed...", most: mostEscaped, call: func(_ *run, a args) any { return template.HTMLEscapeString(escapable(a, "\x00")) }},
		{name: "js", params: "printed printed...", most: mostEscaped, call: func(_ *run, a args) any { return template.JSEscapeString(escapable(a, "")) }},
		{name: "urlquery", params: "printed printed...", most: mostEscaped, call: func(_ *run, a args) any { return template.URLQueryEscaper(fmt.Sprint(a...)) }},
	}
}

// escapable returns the text of all arguments. It panics where an escape would change the
// text. Bytes that are not UTF-8 are such, and the characters of except. Without except, so
// are those that js writes with more than four digits.
func escapable(a args, except string) string {
	for i := range a {
		switch text := fmt.Sprint(a[i]); {
		case !utf8.ValidString(text):
			panic(wrong(i, "is not UTF-8"))
		case except != "" && strings.ContainsAny(text, except):
			panic(wrong(i, "has a NUL byte"))
		case except == "" && strings.ContainsFunc(text, func(r rune) bool { return r > 0xFFFF && !unicode.IsPrint(r) }):
			panic(wrong(i, "has a character that js cannot escape; use toJson"))
		}
	}
	return fmt.Sprint(a...)
}

// condition returns a value that decides between branches. A number such as 0.0 is an
// error, because text/template would take it for true.
func condition(v any) any {
	if n, ok := v.(jsonNumber); ok {
		if d, ok := decimalOf(n); ok && d.digits == "" {
			panic(failure("the number is zero, but not written as 0; compare it with eq"))
		}
	}
	return v
}

func length(_ *run, a args) any {
	switch v := reflect.ValueOf(a[0]); v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len()
	}
	panic(wrong(0, "must be text, a list or a map, not "+typeName(a[0])))
}

func index(_ *run, a args) any {
	item := a[0]
	for i, at := range a[1:] {
		v := reflect.ValueOf(item)
		switch v.Kind() {
		case reflect.Slice:
			n, ok := integer(at)
			if !ok {
				panic(wrong(i+1, "must be a whole number, not "+typeName(at)))
			}
			if n < 0 || n >= v.Len() {
				panic(wrong(i+1, "is outside of the list"))
			}
			item = v.Index(n).Interface()
		case reflect.Map:
			key, ok := at.(string)
			if !ok {
				panic(wrong(i+1, "must be text, not "+typeName(at)))
			}
			found := v.MapIndex(reflect.ValueOf(key))
			if !found.IsValid() {
				panic(wrong(i+1, noSuchKey))
			}
			item = found.Interface()
		case reflect.String:
			panic(wrong(0, "is text, which has no elements; use substr"))
		default:
			panic(wrong(0, "must be a list or a map, not "+typeName(item)))
		}
	}
	return item
}

// slice counts the bytes of text, as text/template does, but never cuts a letter.
func slice(_ *run, a args) any {
	v := reflect.ValueOf(a[0])
	text, isText := a[0].(string)
	switch {
	case !isText && v.Kind() != reflect.Slice:
		panic(wrong(0, "must be text or a list, not "+typeName(a[0])))
	case len(a) > 3:
		panic(failure("it takes at most two indexes"))
	}
	bounds := [2]int{0, v.Len()}
	for i := range a[1:] {
		bounds[i] = a.int(i + 1)
		if n := bounds[i]; n < 0 || n > v.Len() || n < bounds[0] {
			panic(wrong(i+1, "is outside of the range"))
		} else if isText && n < len(text) && !utf8.RuneStart(text[n]) && utf8.ValidString(text) {
			panic(wrong(i+1, "is within a letter; use substr, which counts letters"))
		}
	}
	return v.Slice(bounds[0], bounds[1]).Interface()
}

// equal reports whether two values are equal. Values of different types are not
// comparable, except numbers, and anything with nothing.
func equal(a, b any) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if x, ok := a.(bool); ok {
		if y, ok := b.(bool); ok {
			return x == y
		}
	}
	panic(differ(a, b))
}

func differ(a, b any) failure {
	if typeName(a) == typeName(b) {
		return failure(typeName(a) + " cannot be compared; use deepEqual")
	}
	return failure(typeName(a) + " and " + typeName(b) + " cannot be compared")
}

// compare orders text and numbers. It returns false if a and b are neither both text nor
// both numbers.
func compare(a, b any) (order int, ok bool) {
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	if v.IsValid() && w.IsValid() && v.CanInt() && w.CanInt() {
		return cmp.Compare(v.Int(), w.Int()), true
	}
	x, ok := decimalOf(a)
	y, also := decimalOf(b)
	if !ok || !also {
		return 0, false
	}
	return compareDecimals(x, y), true
}

// printf is fmt.Sprintf for verbs that suit their arguments. It panics where fmt would
// print a fault into the text, and for a width of any size.
func printf(a args) string {
	format, values := a.text(0), slices.Clone(a[1:])
	total, used := 0, 0
	for rest := format; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		end := len(after) - len(strings.TrimLeft(after, "+-# 0123456789.[]*"))
		flags := after[:end]
		if end == len(after) {
			panic(wrong(0, "ends within a verb"))
		}
		verb, width := utf8.DecodeRuneInString(after[end:])
		rest = after[end+width:]
		if strings.ContainsAny(flags, "*[]") {
			panic(wrong(0, "has * or [ in a verb, which is not supported; write the width as a number"))
		}
		total += widths(flags)
		fits(1, total)
		if verb == '%' {
			if flags != "" {
				panic(wrong(0, "has a width before %%"))
			}
			continue
		}
		if !strings.ContainsRune("svqxXdoObteEfFgG", verb) {
			panic(wrong(0, "has a verb that is not supported; use s, v, q, x, d, o, b, t, e, f or g"))
		}
		if used == len(values) {
			panic(wrong(0, "has more verbs than there are values"))
		}
		converted, fault := suits(verb, flags, values[used])
		if fault != "" {
			panic(wrong(used+1, fault))
		}
		values[used] = converted
		used++
	}
	if used < len(values) {
		panic(wrong(used+1, "has no verb in argument 1"))
	}
	return fmt.Sprintf(format, values...)
}

// suits returns the value for a verb of printf, or why it does not suit.
func suits(verb rune, flags string, v any) (converted any, fault string) {
	text, isText := v.(string)
	whole, isWhole := bigInteger(v)
	switch verb {
	case 's', 'q':
		if !isText {
			return nil, "must be text for %" + string(verb) + ", not " + typeName(v)
		}
	case 'v':
		printed, ok := scalar(v)
		if !ok {
			return nil, "must be text, a number or a Boolean for %v, not " + typeName(v)
		}
		if strings.Contains(flags, "#") {
			return nil, "cannot be printed with %#v"
		}
		if !isText && !isWhole {
			return printed, ""
		}
	case 't':
		if _, ok := v.(bool); !ok {
			return nil, "must be true or false for %t, not " + typeName(v)
		}
	case 'x', 'X':
		if isText && strings.Contains(flags, ".") {
			return nil, "would be cut within a letter by the precision of %x"
		}
		if !isText && !isWhole {
			return nil, "must be text or a whole number for %x, not " + typeName(v)
		}
	case 'd', 'o', 'O', 'b':
		if !isWhole {
			return nil, "must be a whole number for %" + string(verb) + ", not " + typeName(v)
		}
	default:
		f, ok := exactFloat(v)
		if !ok {
			return nil, "must be a number that 64 bits hold for %" + string(verb) + ", not " + typeName(v)
		}
		return f, ""
	}
	if isText {
		return text, ""
	}
	if isWhole {
		return whole, ""
	}
	return v, ""
}

// bigInteger returns a whole number of any size, written with digits only.
func bigInteger(v any) (any, bool) {
	if n, ok := v.(jsonNumber); ok {
		return new(big.Int).SetString(n.text, 10)
	}
	return integer(v)
}

// exactFloat returns the number as 64 bits, if these distinguish it from all others with
// as many digits.
func exactFloat(v any) (float64, bool) {
	want, ok := decimalOf(v)
	if !ok {
		return 0, false
	}
	text, _ := scalar(v)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	got, _ := decimalOf(jsonNumber{strconv.FormatFloat(f, 'g', -1, 64)})
	return f, got == want || want.digits == ""
}

// widths returns the sum of the numbers in s.
func widths(s string) (sum int) {
	n := 0
	for i := range len(s) {
		if c := s[i]; '0' <= c && c <= '9' {
			n = min(10*n+int(c-'0'), maxResult)
			continue
		}
		sum, n = sum+n, 0
	}
	return sum + n
}
