package render

import (
	"fmt"
	"reflect"
)

// The bounds of a template. A template that needs more is stopped: text/template
// itself listens to nothing while it runs.
const (
	// MaxTemplate is how many bytes a template's text may have.
	MaxTemplate = 1 << 20
	// maxResult is how many bytes a template may write, and how many any value
	// that it makes on the way may have.
	maxResult = 4 << 20

	maxActions  = 10_000   // actions, between {{ and }}, in a template's text
	maxNesting  = 100      // blocks and parentheses within each other; templates that call each other
	maxElements = 100_000  // elements of a list that a single call makes
	maxDepth    = 32       // lists and maps within each other
	maxWork     = 32 << 20 // see work
	maxCall     = 2 << 20  // the same, for a single call that may do more than look at its arguments
)

// What work is made of, besides a unit for each byte that a function makes.
const (
	stepWork     = 64 // a command of the template
	elementWork  = 16 // an element of a list that a function makes
	entryWork    = 64 // an entry of a map
	pairWork     = 8  // a comparison of two elements
	argumentPart = 8  // this many bytes of arguments are a unit
)

// work counts what a template does, so that one that runs away is stopped. A
// unit takes some nanoseconds; all of them take less than some seconds.
type work struct{ left int }

// limitError is a bound that a template does not keep.
type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

func tooLarge() error {
	return &limitError{fmt.Sprintf("it makes a value of more than %d bytes", maxResult)}
}

// spend takes units off; functions panic when none is left, as text/template
// turns that into an error of the template.
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

// fits panics when times copies of size bytes are more than a value may have.
func fits(times, size int) {
	if times > 0 && size > maxResult/times {
		panic(tooLarge())
	}
}

// few panics when a list would have too many elements.
func few(elements int) {
	if elements > maxElements {
		panic(&limitError{fmt.Sprintf("it makes a list of more than %d elements", maxElements)})
	}
}

// size is how many bytes v has, with all that it contains when deep, elements
// and entries counting as elementWork and entryWork. It looks at no more than it takes to see
// that they are more than most, and panics rather than look deeper than
// maxDepth; so it also ends in a list that contains itself.
func size(v reflect.Value, deep bool, most int) int {
	m := measure{deep: deep, most: most}
	m.add(v, 0)
	return m.bytes
}

type measure struct {
	deep        bool
	bytes, most int
}

// arguments adds those of a function.
func (m *measure) arguments(args []reflect.Value, variadic bool) {
	for i, arg := range args {
		if !variadic || i < len(args)-1 {
			m.add(arg, 0)
			continue
		}
		m.bytes += arg.Len() * elementWork
		for j := 0; j < arg.Len() && m.bytes <= m.most; j++ {
			m.add(arg.Index(j), 0)
		}
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
		for i := 0; i < v.Len() && m.into(depth); i++ {
			m.add(v.Index(i), depth+1)
		}
	case reflect.Map:
		m.bytes += v.Len() * entryWork
		for iter := v.MapRange(); m.into(depth) && iter.Next(); {
			m.add(iter.Key(), depth+1)
			m.add(iter.Value(), depth+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && m.into(depth); i++ {
			m.add(v.Field(i), depth+1)
		}
	default:
		m.bytes++
	}
}

// into reports whether to look into what v contains.
func (m *measure) into(depth int) bool {
	if m.deep && depth >= maxDepth {
		panic(&limitError{fmt.Sprintf("it puts more than %d lists or maps within each other", maxDepth)})
	}
	return m.deep && m.bytes <= m.most
}
