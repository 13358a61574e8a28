package render

import (
	"fmt"
	"reflect"
)

// The limits of a template. A template that exceeds them is stopped, because
// text/template itself cannot be canceled.
const (
	// maxResult bounds a template's output, in bytes, and each intermediate value.
	maxResult = 4 << 20

	maxActions  = 10_000   // actions, between {{ and }}, in a template's text
	maxNesting  = 100      // nested blocks and parentheses; templates that call each other
	maxElements = 100_000  // elements of a list from a single call
	maxDepth    = 32       // nested lists and maps
	maxWork     = 32 << 20 // see work
	maxCall     = 2 << 20  // the same, for a single call that does more than read its arguments
)

// Units of work, besides one unit for each byte that a function produces.
const (
	stepWork     = 64 // a command of the template
	elementWork  = 16 // an element of a list that a function produces
	entryWork    = 64 // an entry of a map
	pairWork     = 16 // a comparison of two elements
	argumentPart = 8  // bytes of arguments per unit
)

// work counts the work of a template, so that a runaway template is stopped. A unit
// takes some nanoseconds. The whole budget takes a few seconds at most.
type work struct{ left int }

// limitError is a limit that a template exceeds.
type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

func tooLarge() error {
	return &limitError{fmt.Sprintf("it makes a value of more than %d bytes", maxResult)}
}

func tooNested() error {
	return &limitError{fmt.Sprintf("it nests more than %d lists or maps", maxDepth)}
}

// spend deducts units. It panics when none is left. text/template converts that
// panic, inside a function, into an error of the template.
func (w *work) spend(units int) {
	if w.left -= units; units < 0 || w.left < 0 {
		w.left = 0
		panic(&limitError{"it does not end within the work that a template may do"})
	}
}

// call is spend for a single call of a function.
func (w *work) call(units int) {
	if units < 0 || units > maxCall {
		panic(&limitError{"it takes more work than a single call may"})
	}
	w.spend(units)
}

// fits panics if times copies of size bytes exceed the limit for a value.
func fits(times, size int) {
	if times > 0 && size > maxResult/times {
		panic(tooLarge())
	}
}

// few panics if a list would have too many elements.
func few(elements int) {
	if elements > maxElements {
		panic(&limitError{fmt.Sprintf("it makes a list of more than %d elements", maxElements)})
	}
}

// size returns the bytes of v. If deep, it includes everything that v contains,
// with elementWork and entryWork per element and entry. It stops as soon as the
// size exceeds most. It panics beyond maxDepth, so it terminates on a list that
// contains itself.
func size(v reflect.Value, deep bool, most int) int {
	m := measure{deep: deep, most: most}
	m.add(v, 0)
	return m.bytes
}

type measure struct {
	deep        bool
	bytes, most int
}

// arguments adds the arguments of a function. More than fixed ones are a list.
func (m *measure) arguments(args []any, fixed int) {
	m.bytes += max(len(args)-fixed, 0) * elementWork
	for i := 0; i < len(args) && m.bytes <= m.most; i++ {
		m.add(reflect.ValueOf(args[i]), 0)
	}
}

func (m *measure) add(v reflect.Value, depth int) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		m.bytes += v.Len()
	case reflect.Slice, reflect.Array:
		m.bytes += v.Len() * elementWork
		for i := 0; m.into(depth) && i < v.Len(); i++ {
			m.add(v.Index(i), depth+1)
		}
	case reflect.Map:
		m.bytes += v.Len() * entryWork
		for iter := v.MapRange(); m.into(depth) && iter.Next(); {
			m.add(iter.Key(), depth+1)
			m.add(iter.Value(), depth+1)
		}
	case reflect.Struct:
		for i := 0; m.into(depth) && i < v.NumField(); i++ {
			m.add(v.Field(i), depth+1)
		}
	default:
		m.bytes++
	}
}

// into reports whether to descend into v.
func (m *measure) into(depth int) bool {
	if m.deep && depth >= maxDepth {
		panic(tooNested())
	}
	return m.deep && m.bytes <= m.most
}
