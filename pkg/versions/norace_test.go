//go:build !race

package versions

const raced = false

const usualHistories = 2_000
