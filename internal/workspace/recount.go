package workspace

import (
	"bytes"
	"fmt"

	"toritsugi/internal/lazyregexp"
)

// hunkHead is the head of a hunk: where it begins before and after, and what stands behind.
var hunkHead = lazyregexp.New(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)`)

// fileHead is where the hunks of a file begin.
var fileHead = lazyregexp.New(`(?m)^--- .*\n\+\+\+ .*\n@@ -`)

// Recounted is a patch with the counts of its hunks as their lines have it, as git apply
// --recount takes them: models miscount. A patch whose counts are right is returned as it
// is. Empty lines behind a hunk, which no count tells from lines of context, are left out.
func Recounted(raw []byte) []byte {
	if len(raw) > MaxPatch {
		return raw
	}
	if p, err := ParsePatch(raw); err == nil && len(fileHead().FindAll(raw, -1)) <= len(p.Files) { // else a hunk counts the next file's head in
		return raw
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(lines); {
		head := hunkHead().FindSubmatch(bytes.TrimRight(lines[i], "\r\n"))
		if head == nil {
			out = append(out, lines[i]...)
			i++
			continue
		}
		end, before, after := hunkBody(lines, i+1)
		out = fmt.Appendf(out, "@@ -%s +%s @@%s\n", span(head[1], before), span(head[2], after), head[3])
		out = append(out, bytes.Join(lines[i+1:end], nil)...)
		for i = end; i < len(lines) && len(bytes.TrimRight(lines[i], "\r\n")) == 0; i++ {
		}
	}
	return out
}

// hunkBody is where the lines of a hunk end that begin at a place, and how many it has
// before and after.
func hunkBody(lines [][]byte, from int) (end, before, after int) {
	for end = from; end < len(lines); end++ {
		line := lines[end]
		if len(line) == 0 || end+1 < len(lines) && bytes.HasPrefix(line, []byte("--- ")) && bytes.HasPrefix(lines[end+1], []byte("+++ ")) {
			break
		}
		switch line[0] {
		case ' ', '\n', '\r':
			before, after = before+1, after+1
		case '-':
			before++
		case '+':
			after++
		case '\\':
		default:
			return trimmed(lines, from, end, before, after)
		}
	}
	return trimmed(lines, from, end, before, after)
}

// trimmed takes the empty lines from the end of a hunk.
func trimmed(lines [][]byte, from, end, before, after int) (int, int, int) {
	for end > from && len(bytes.TrimRight(lines[end-1], "\r\n")) == 0 {
		end, before, after = end-1, before-1, after-1
	}
	return end, before, after
}

// span is a part of a hunk's head as git writes it.
func span(at []byte, n int) string {
	if n == 1 {
		return string(at)
	}
	return fmt.Sprintf("%s,%d", at, n)
}
