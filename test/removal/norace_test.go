//go:build !race

package removal

const usualHistories = 10000
