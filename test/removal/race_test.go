//go:build race

package removal

// usualHistories is lower under the race detector, which makes each history ten times
// slower. These are the first ones of the run without it.
const usualHistories = 100
