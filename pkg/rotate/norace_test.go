//go:build !race

package rotate

const each = 1
