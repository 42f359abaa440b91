package spelling

import "strings"

// Fits reports whether a name fits a pattern in which * stands for any characters and
// ? for one. It takes time in proportion to both lengths multiplied.
func Fits(pattern, name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0: // the star takes one more
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
