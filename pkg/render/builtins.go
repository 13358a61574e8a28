package render

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// The functions below replace text/template's functions with the same names. The
// originals accept numbers that cause unlimited padding, are not counted, and give
// an empty value for a missing map key. Otherwise the replacements behave the same.

const (
	cannotCompare failure = "its arguments cannot be compared"
	cannotIndex   failure = "its argument cannot be indexed so"
	outOfRange    failure = "the index is out of range"
	noSuchKey     failure = "the map has no such key"
)

func printAll(args ...any) string  { return fmt.Sprint(args...) }
func printLine(args ...any) string { return fmt.Sprintln(args...) }

// printf rejects %p, which differs each time, and a width or precision from an
// argument. If a verb selects its argument by index, the bound assumes that every
// verb prints the longest argument.
func printf(format string, args ...any) (string, error) {
	total := 0
	if strings.Contains(format, "[") {
		fits(8*strings.Count(format, "%"), size(reflect.ValueOf(args), true, maxResult))
	}
	for rest := format; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		end := len(after) - len(strings.TrimLeft(after, "+-# 0123456789.[]*"))
		if strings.Contains(after[:end], "*") {
			return "", failure("* is not supported; write the width as a number")
		}
		total += widths(after[:end])
		fits(1, total)
		if rest = after[end:]; strings.HasPrefix(rest, "p") {
			return "", failure("%p is not supported")
		}
		rest = rest[min(1, len(rest)):]
	}
	return fmt.Sprintf(format, args...), nil
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

func index(item any, indexes ...any) (any, error) {
	for _, at := range indexes {
		v, key := reflect.ValueOf(item), reflect.ValueOf(at)
		switch v.Kind() {
		case reflect.Slice, reflect.Array, reflect.String:
			n, err := position(key, v.Len())
			if err != nil {
				return nil, err
			}
			item = v.Index(n).Interface()
		case reflect.Map:
			if !key.IsValid() || !key.Type().AssignableTo(v.Type().Key()) {
				return nil, cannotIndex
			}
			found := v.MapIndex(key)
			if !found.IsValid() {
				return nil, noSuchKey
			}
			item = found.Interface()
		default:
			return nil, cannotIndex
		}
	}
	return item, nil
}

func position(v reflect.Value, length int) (int, error) {
	switch {
	case v.IsValid() && v.CanInt():
		if n := v.Int(); 0 <= n && n < int64(length) {
			return int(n), nil
		}
	case v.IsValid() && v.CanUint():
		if n := v.Uint(); n < uint64(length) {
			return int(n), nil
		}
	default:
		return 0, cannotIndex
	}
	return 0, outOfRange
}

// equal reports whether a equals any of others.
func equal(a any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, failure("it needs a second argument")
	}
	for _, b := range others {
		same, err := equalPair(a, b)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func equalPair(a, b any) (bool, error) {
	if order, ok := compare(a, b); ok {
		return order == 0, nil
	}
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case !v.IsValid() || !w.IsValid():
		return isNil(v) && isNil(w), nil
	case v.Kind() != w.Kind():
		return false, cannotCompare
	case isNil(v) || isNil(w):
		return isNil(v) == isNil(w), nil
	case !v.Comparable() || !w.Comparable():
		return false, cannotCompare
	}
	return a == b, nil
}

func notEqual(a, b any) (bool, error) {
	same, err := equal(a, b)
	return !same && err == nil, err
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

func less(a, b any) (bool, error) {
	return ordered(a, b, func(order int) bool { return order < 0 })
}

func lessOrEqual(a, b any) (bool, error) {
	return ordered(a, b, func(order int) bool { return order <= 0 })
}

func greater(a, b any) (bool, error) {
	return ordered(a, b, func(order int) bool { return order > 0 })
}

func greaterOrEqual(a, b any) (bool, error) {
	return ordered(a, b, func(order int) bool { return order >= 0 })
}

func ordered(a, b any, is func(order int) bool) (bool, error) {
	order, ok := compare(a, b)
	if !ok {
		return false, cannotCompare
	}
	return is(order), nil
}

// compare orders strings, floating-point numbers, and integers of any type. It
// returns false if a and b are not of one of these kinds.
func compare(a, b any) (order int, ok bool) {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	if !v.IsValid() || !w.IsValid() {
		return 0, false
	}
	switch {
	case v.Kind() == reflect.String && w.Kind() == reflect.String:
		return strings.Compare(v.String(), w.String()), true
	case v.CanFloat() && w.CanFloat():
		return cmp.Compare(v.Float(), w.Float()), true
	case v.CanInt() && w.CanInt():
		return cmp.Compare(v.Int(), w.Int()), true
	case v.CanUint() && w.CanUint():
		return cmp.Compare(v.Uint(), w.Uint()), true
	case v.CanInt() && w.CanUint():
		if v.Int() < 0 {
			return -1, true
		}
		return cmp.Compare(uint64(v.Int()), w.Uint()), true
	case v.CanUint() && w.CanInt():
		order, ok = compare(b, a)
		return -order, ok
	}
	return 0, false
}
