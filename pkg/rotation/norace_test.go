//go:build !race

package rotation

const each = 1
