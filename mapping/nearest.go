package mapping

import "strings"

// maxNear is the longest name, in characters, that is compared with others: the
// work grows with the product of the lengths.
const maxNear = 64

// swap and change are what letters that are swapped, and a letter that is wrong,
// missing or too many, count: swapped ones are the likelier slip.
const swap, change = 1, 2

// Nearest is the one of names that somebody who wrote name may have meant: equal
// but for case, or at most a third of its characters wrong, missing, too many or
// swapped with their neighbour. It is "" when none is so near.
func Nearest(name string, names []string) string {
	word := []rune(strings.ToLower(name))
	if len(word) > maxNear {
		return ""
	}
	nearest, least := "", change*max(1, len(word)/3)+1
	for _, other := range names {
		if d := distance(word, []rune(strings.ToLower(other)), least); d < least {
			nearest, least = other, d
		}
	}
	return nearest
}

// distance counts the single changes that make b of a, or gives limit when the
// lengths alone need as many.
func distance(a, b []rune, limit int) int {
	if change*max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	var before []int
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = change * j
	}
	for i := range a {
		row[0] = change * (i + 1)
		for j := range b {
			least := last[j]
			if a[i] != b[j] {
				least += change
			}
			row[j+1] = min(least, last[j+1]+change, row[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+swap)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
