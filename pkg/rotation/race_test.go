//go:build race

package rotation

// each is that every which fault is tried: the race detector slows the test.
const each = 4
