//go:build race

package rotation

// each is that every which fault is tried. The race detector slows the test.
const each = 4
