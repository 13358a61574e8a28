//go:build !race

package versions

const raced = false

const usualHistories = 10_000
