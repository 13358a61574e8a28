//go:build race

package versions

// raced says that the race detector slows the test tenfold.
const raced = true

const usualHistories = 1_000
