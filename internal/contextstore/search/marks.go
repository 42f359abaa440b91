package search

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// apart sorts places and joins those that touch.
func apart(at [][2]int) (out [][2]int) {
	slices.SortFunc(at, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range at {
		if n := len(out); n > 0 && p[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], p[1])
			continue
		}
		out = append(out, p)
	}
	return out
}

// around cuts a text to about so many bytes around the first place, and moves the places with it.
func around(text string, at [][2]int, most int) (string, [][2]int) {
	if len(text) <= most {
		return text, at
	}
	from := 0
	if len(at) > 0 {
		from = max(min(at[0][0]-most/4, len(text)-most), 0)
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	to := min(from+most, len(text))
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	var inside [][2]int
	for _, p := range at {
		if p[0] >= from && p[1] <= to {
			inside = append(inside, [2]int{p[0] - from, p[1] - from})
		}
	}
	return text[from:to], inside
}

// clip is the beginning of a text, at most so many bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
