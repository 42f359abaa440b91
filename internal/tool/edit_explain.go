package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/lazyregexp"
)

// notFound explains to the model why old is not in content, so that the next
// attempt is a correct one: what differs, and what the file has there.
func (w *workspaceFiles) notFound(content, old string) string {
	if len(w.tokens(old)) > 0 && len(w.tokens(content)) == 0 {
		return "old_text was not found. It contains " + w.tokens(old)[0].token + ", which stands for text of the file that was masked before you saw it, " +
			"and there is none now. Choose old_text from the lines around it."
	}
	lines, want := splitLines(content), splitLines(old)
	for _, d := range differences {
		if at := windowsWith(lines, want, d.normal); len(at) > 0 {
			reason, found := d.reason(content, old), candidates(content, at, len(trimBlank(want)))
			if strings.Contains(reason, "<tab>") {
				found = withTabs(found)
			}
			return "old_text was not found. " + reason + " The file has:\n" + found
		}
	}
	at := nearestWindows(lines, want)
	if len(at) == 0 {
		return "old_text was not found, and no line is like it. Read the file again; it may have changed."
	}
	return "old_text was not found. The nearest lines are:\n" + candidates(content, at, len(trimBlank(want)))
}

// linePrefix is the number that stands in front of a line where grep or a failed edit shows it.
var linePrefix = lazyregexp.New(`^\s*\d+(?:\t|: )`)

// differences are the usual ones, the smallest first: a line under normal
// forgets the difference.
var differences = []struct {
	normal func(string) string
	reason func(content, old string) string
}{
	{trimEnd, endReason},
	{func(s string) string { return trimEnd(linePrefix().ReplaceAllString(s, "")) },
		always("old_text contains line numbers; leave them out.")},
	{strings.TrimSpace, indentReason},
	{squeeze, always("The spaces or tabs within the lines differ.")},
	{func(s string) string { return strings.ToLower(squeeze(s)) }, always("Upper and lower case differ.")},
	{func(s string) string { return squeeze(plain.Replace(s)) },
		always("The quotes, dashes or special spaces differ.")},
}

func always(s string) func(string, string) string { return func(string, string) string { return s } }

// plain replaces what models and editors put for ASCII characters.
var plain = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`, "–", "-", "—", "-", "−", "-", "…", "...", "\u00a0", " ", "\u3000", " ")

func trimEnd(s string) string { return strings.TrimRight(s, " \t\r") }

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func endReason(content, old string) string {
	fileCRLF, _ := lineEnds(content)
	oldCRLF, _ := lineEnds(old)
	switch {
	case oldCRLF > 0 && fileCRLF == 0:
		return "old_text has CRLF line ends, the file has LF."
	case oldCRLF == 0 && fileCRLF > 0:
		return "The line ends differ: the file has CRLF on some lines."
	}
	return "The white space at the ends of the lines, or empty lines at the beginning or end, differ."
}

// indentReason names the first line that differs, where there is one place alone.
func indentReason(content, old string) string {
	lines, want := splitLines(content), trimBlank(splitLines(old))
	at := windowsWith(lines, want, strings.TrimSpace)
	if len(at) > 1 {
		return fmt.Sprintf("The indentation differs, and there are %s with these lines: take in more of the lines around the one you mean. <tab> stands for a tab.", counted(len(at), "place"))
	}
	for i, line := range want {
		if there := lines[at[0]+i]; indentOf(line) != indentOf(there) {
			return fmt.Sprintf("The indentation differs: %q begins with %s in old_text and with %s in the file. <tab> stands for a tab.", shorten([]byte(strings.TrimSpace(line)), 60, int64(len(strings.TrimSpace(line)))), begins(line), begins(there))
		}
	}
	return "The white space around the lines differs. <tab> stands for a tab."
}

// maxCandidates is how many places of the file a message shows, maxWindow how
// many lines of each.
const (
	maxCandidates = 3
	maxWindow     = 12
)

// windowsWith returns where lines are the wanted ones under normal, as
// 0-based line numbers, at most maxCandidates.
func windowsWith(lines, want []string, normal func(string) string) []int {
	want = trimBlank(want)
	if len(want) == 0 {
		return nil
	}
	wanted := make([]string, len(want))
	for i, l := range want {
		wanted[i] = normal(l)
	}
	var at []int
	for i := 0; i+len(want) <= len(lines) && len(at) < maxCandidates; i++ {
		same := 0
		for same < len(wanted) && normal(lines[i+same]) == wanted[same] {
			same++
		}
		if same == len(wanted) {
			at = append(at, i)
		}
	}
	return at
}

// trimBlank drops the blank lines at both ends.
func trimBlank(lines []string) []string {
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// nearestWindows returns where most of the wanted lines are, or, where none is,
// the lines most like the first wanted one; 0-based.
func nearestWindows(lines, want []string) []int {
	want = trimBlank(want)
	if len(want) == 0 {
		return nil
	}
	if at := votedWindows(lines, want); len(at) > 0 {
		return at
	}
	return similarLines(lines, want[0])
}

// votedWindows lets each file line that equals a wanted one vote for where the
// whole would begin. Lines that say little, like "}", have no vote.
func votedWindows(lines, want []string) []int {
	places := map[string][]int{}
	for j, l := range want {
		if l = squeeze(l); strings.IndexFunc(l, isWord) >= 0 {
			if p := places[l]; len(p) < 8 { // a line repeated in old_text locates nothing
				places[l] = append(p, j)
			}
		}
	}
	votes := map[int]int{}
	for i, l := range lines {
		for _, j := range places[squeeze(l)] {
			votes[max(0, i-j)]++
		}
	}
	type vote struct{ at, n int }
	var ranked []vote
	for at, n := range votes {
		ranked = append(ranked, vote{at, n})
	}
	slices.SortFunc(ranked, func(a, b vote) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.at, b.at)) })
	var at []int
	for _, v := range ranked[:min(len(ranked), maxCandidates)] {
		at = append(at, v.at)
	}
	slices.Sort(at)
	return at
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// maxCompared is how many lines of a file are compared with a wanted one, and
// comparedLen how many bytes of each.
const (
	maxCompared = 50_000
	comparedLen = 400
)

// similarLines returns the lines that share the most pairs of bytes with want,
// at least half of them (Dice's coefficient).
func similarLines(lines []string, want string) []int {
	wanted := pairs(want)
	type score struct {
		at int
		s  float64
	}
	var best []score
	for i, l := range lines[:min(len(lines), maxCompared)] {
		have := pairs(l)
		shared, total := 0, 0
		for p, n := range have {
			shared += min(n, wanted[p])
			total += n
		}
		for _, n := range wanted {
			total += n
		}
		if total == 0 {
			continue
		}
		if s := 2 * float64(shared) / float64(total); s >= 0.5 {
			best = append(best, score{i, s})
		}
	}
	slices.SortStableFunc(best, func(a, b score) int { return cmp.Compare(b.s, a.s) })
	var at []int
	for _, b := range best[:min(len(best), maxCandidates)] {
		at = append(at, b.at)
	}
	slices.Sort(at)
	return at
}

func pairs(s string) map[[2]byte]int {
	s = squeeze(s)
	s = s[:min(len(s), comparedLen)]
	m := map[[2]byte]int{}
	for i := 0; i+1 < len(s); i++ {
		m[[2]byte{s[i], s[i+1]}]++
	}
	return m
}

// candidates shows size lines of content from each of the places.
func candidates(content string, at []int, size int) string {
	var b strings.Builder
	for i, from := range at {
		if i > 0 {
			b.WriteString("--\n")
		}
		b.WriteString(numbered(content, from, from+max(size, 1), maxWindow))
	}
	return b.String()
}
