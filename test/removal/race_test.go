//go:build race

package removal

// usualHistories is fewer under the race detector, which makes each of them
// take ten times as long. They are the first of those without it.
const usualHistories = 100
