//go:build race

package removal

// usualHistories is fewer under the race detector, which makes each of them
// take five times as long.
const usualHistories = 500
