package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"toritsugi/internal/channel"
)

// diffLines colours a unified diff. Where a line was replaced by one that is much
// like it, the words that differ stand out.
func diffLines(diff string) (out []line) {
	all := strings.Split(strings.TrimRight(channel.Clean(diff), "\n"), "\n")
	within := !strings.Contains(diff, "@@") // a hunk
	for i := 0; i < len(all); i++ {
		l := all[i]
		switch {
		case strings.HasPrefix(l, "@@"):
			within = true
			out = append(out, styled(cyan, l))
		case strings.HasPrefix(l, "diff --git "):
			within = false
			out = append(out, styled(bold, l))
		case !within:
			out = append(out, styled(faint, l))
		case strings.HasPrefix(l, "-"):
			gone := run(all[i:], "-")
			come := run(all[i+len(gone):], "+")
			out = append(out, replaced(gone, come)...)
			i += len(gone) + len(come) - 1
		case strings.HasPrefix(l, "+"):
			out = append(out, styled(green, l))
		default:
			out = append(out, plain(l))
		}
	}
	return out
}

// run is how many lines from the first on begin with mark.
func run(all []string, mark string) []string {
	n := 0
	for n < len(all) && strings.HasPrefix(all[n], mark) {
		n++
	}
	return all[:n]
}

// replaced shows lines that went and those that came in their place.
func replaced(gone, come []string) []line {
	var before, after []line
	for _, l := range gone {
		before = append(before, styled(red, l))
	}
	for _, l := range come {
		after = append(after, styled(green, l))
	}
	if len(gone) == len(come) { // else which became which is a guess
		for i := range gone {
			if a, b, ok := changed(gone[i][1:], come[i][1:]); ok {
				before[i] = append(styled(red, "-"), a...)
				after[i] = append(styled(green, "+"), b...)
			}
		}
	}
	return append(before, after...)
}

// maxWords is how many words of a line are compared.
const maxWords = 2000

// changed marks the words that differ; ok is false where little is the same.
func changed(before, after string) (a, b line, ok bool) {
	x, y := words(before), words(after)
	if len(x)+len(y) > maxWords {
		return nil, nil, false
	}
	// Each word as one character, for which there is a diff.
	known := map[string]rune{}
	code := func(all []string) string {
		var s strings.Builder
		for _, w := range all {
			if _, has := known[w]; !has {
				known[w] = rune(0x10000 + len(known))
			}
			s.WriteRune(known[w])
		}
		return s.String()
	}
	cx, cy := code(x), code(y)
	same, i, j := 0, 0, 0
	keep := func(until int) {
		for ; i < until; i, j = i+1, j+1 {
			a, b = append(a, span{red, x[i]}), append(b, span{green, y[j]})
			if strings.TrimSpace(x[i]) != "" {
				same += len(x[i])
			}
		}
	}
	const size = 4 // bytes of a code
	for _, e := range udiff.Strings(cx, cy) {
		keep(e.Start / size)
		for ; i < e.End/size; i++ {
			a = append(a, span{red | reverse, x[i]})
		}
		for range utf8.RuneCountInString(e.New) {
			b = append(b, span{green | reverse, y[j]})
			j++
		}
	}
	keep(len(x))
	return a, b, same*3 >= max(len(strings.TrimSpace(before)), len(strings.TrimSpace(after)))
}

// words cuts a line into words, and single characters between them.
func words(s string) (all []string) {
	start := -1
	for i, r := range s {
		if r < 0x2e80 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			all = append(all, s[start:i])
			start = -1
		}
		all = append(all, s[i:i+utf8.RuneLen(r)])
	}
	if start >= 0 {
		all = append(all, s[start:])
	}
	return all
}
