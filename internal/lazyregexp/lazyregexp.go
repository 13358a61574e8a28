// Package lazyregexp compiles the regular expressions of package variables when they are
// first used. Most processes use few of them, and each costs time and memory.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled pattern. Like regexp.MustCompile, that
// function panics if the pattern is invalid.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
