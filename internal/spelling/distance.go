// Package spelling compares names: how far one is from another, for errors that say
// which known name was probably meant, and whether one fits a pattern. It knows no
// names itself.
package spelling

import (
	"slices"
	"strings"
	"unicode"
)

// Nearest is the candidate that name was probably meant to be, "" where none is
// like it: the one at the least Distance, whatever the case, if that is at most a
// third of name, or two; else the first that has name among its words. A name of
// more than a hundred bytes is like none.
func Nearest(name string, candidates []string) string {
	name = strings.ToLower(name)
	if len(name) > 100 {
		return ""
	}
	best, least := "", max(2, len(name)/3)+1
	for _, c := range candidates {
		if d := Distance(name, strings.ToLower(c)); d < min(least, max(len(name), len(c))) {
			best, least = c, d
		}
	}
	if best != "" {
		return best
	}
	i := slices.IndexFunc(candidates, func(c string) bool {
		words := strings.FieldsFunc(strings.ToLower(c), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		return slices.Contains(words, name)
	})
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// Distance is the Levenshtein distance of a and b, in bytes. It takes time
// O(len(a) × len(b)): callers bound what strangers may have compared.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
