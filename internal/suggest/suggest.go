// Package suggest finds the word that a misspelled one probably means.
package suggest

import "slices"

// Nearest returns the name that differs from word in the fewest letters, if these are
// few. Among several it returns the first. Without one it returns the empty string.
func Nearest(word string, names []string) string {
	best, least := "", 1+min(3, len(word)/4)
	for _, name := range names {
		if len(word)-len(name) >= least {
			continue
		}
		if d := Distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// Distance is the number of letters to insert, delete, replace or swap with the next one.
func Distance(a, b string) int {
	var earlier []int // the row before previous
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j+1]+1, row[j]+1, previous[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], earlier[j-1]+1)
			}
		}
		earlier = previous
	}
	return row[len(b)]
}
