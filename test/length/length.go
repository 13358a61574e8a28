// Package length says how many random histories a test lives through.
package length

import (
	"flag"
	"fmt"
	"testing"
)

// Flag defines a flag of the test binary, and returns its value. Without the
// flag that is usual, and short with -short.
func Flag(name string, usual, short int, usage string) func() int {
	given := flag.Int(name, 0, fmt.Sprintf("%s; 0: %d, with -short %d", usage, usual, short))
	return func() int {
		switch {
		case *given != 0:
			return *given
		case testing.Short():
			return short
		}
		return usual
	}
}

// Seeds defines the flag -crash-seeds.
func Seeds() func() int {
	return Flag("crash-seeds", 2, 1, "how many histories of each fault are tried")
}
