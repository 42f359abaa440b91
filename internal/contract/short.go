package contract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shortened is at most max characters of s, cut at the end of a line where there is one in
// the second half of it, and how many characters were left out.
func Shortened(s string, most int) (short string, left int) {
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s, 0
	}
	end, count := len(s), 0
	for i := range s {
		if count == most {
			end = i
			break
		}
		count++
	}
	short = s[:end]
	if i := strings.LastIndexByte(short, '\n'); i > end/2 {
		short = short[:i]
	}
	return short, n - utf8.RuneCountInString(short)
}

// Headline is the first line of a text, of a longer one the beginning of at most so many
// characters, "…" at its end: no word is cut, and no quotation is left open.
func Headline(s string, most int) string {
	r := []rune(strings.TrimSpace(firstLine(s)))
	if len(r) <= most {
		return string(r)
	}
	inWord := func(c rune) bool { return c < 0x2E80 && !unicode.IsSpace(c) } // those of Japanese may stand by themselves
	end := most - 1
	for end > most/2 && inWord(r[end-1]) && inWord(r[end]) {
		end--
	}
	short := string(r[:end])
	for _, pair := range []string{`""`, "``", "「」", "『』", "（）", "()"} {
		begin, stop := []rune(pair)[0], []rune(pair)[1]
		open := strings.Count(short, string(begin)) > strings.Count(short, string(stop))
		if begin == stop {
			open = strings.Count(short, string(begin))%2 == 1
		}
		if i := strings.LastIndex(short, string(begin)); open && i > 0 {
			short = short[:i]
		}
	}
	return strings.TrimRight(short, " 、。,.…") + "…"
}
