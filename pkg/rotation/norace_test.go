//go:build !race

package rotation

// each is that every which fault is tried.
const each = 2
