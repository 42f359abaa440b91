package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/redact"
)

// minGlued is the least length, in bytes, of a token that is seen only where the
// pieces of a text are joined: words that are glued together look like one.
const minGlued = 20

// seamless is a text without what stands between the pieces of one string or value
// (redact.Seam), and where they stood.
type seamless struct {
	text  string
	seams []seam
}

// seam says that the joined text goes on, at this byte, with that of the original.
type seam struct{ at, original int }

func join(s string) (j seamless) {
	var b strings.Builder
	last := 0
	for i := 0; ; {
		n := strings.IndexAny(s[i:], "\"'`\\\n\r")
		if n < 0 {
			break
		}
		i += n
		end := last + len(strings.TrimRight(s[last:i], " \t"))
		next, _ := redact.Seam(s, end)
		if next == 0 {
			i++
			continue
		}
		b.WriteString(s[last:end])
		j.seams = append(j.seams, seam{b.Len(), next})
		last, i = next, next
	}
	b.WriteString(s[last:])
	j.text = b.String()
	return j
}

// original is where byte i of the joined text stood.
func (j seamless) original(i int) int {
	n, _ := slices.BinarySearchFunc(j.seams, i+1, func(x seam, i int) int { return cmp.Compare(x.at, i) })
	if n == 0 {
		return i
	}
	return i - j.seams[n-1].at + j.seams[n-1].original
}

// glued lists the secrets that are seen where the pieces of a text are joined.
func (f *Filter) glued(s string) (found []redact.Match) {
	j := join(s)
	if len(j.seams) == 0 {
		return nil
	}
	for _, m := range f.o.Sanitizer.Locate(j.text) {
		if m.Known || m.Secret && m.End-m.Start >= minGlued && strings.ContainsAny(j.text[m.Start:m.End], "0123456789") {
			m.Start, m.End = j.original(m.Start), j.original(m.End-1)+1
			found = append(found, m)
		}
	}
	return found
}

// secrets masks what looks like a secret, or is a known one. Of a secret in
// pieces the first may look like one itself: what overlaps is masked as one.
func (f *Filter) secrets(_ Format, s string) (edits []edit) {
	all := append(f.o.Sanitizer.Locate(s), f.glued(s)...)
	slices.SortStableFunc(all, func(a, b redact.Match) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	for _, m := range all {
		if n := len(edits) - 1; n >= 0 && m.Start < edits[n].end {
			edits[n].end = max(edits[n].end, m.End)
			continue
		}
		edits = append(edits, edit{m.Start, m.End, m.Token, FoundSecret})
	}
	return edits
}

// holdsSecret reports whether a text holds a secret, in one piece or in several.
func (f *Filter) holdsSecret(s string) bool {
	return len(f.o.Sanitizer.FindSecrets(s)) > 0 || len(f.glued(s)) > 0
}

// patchSecrets lists the secrets in the lines that a patch adds and in the names
// of its files.
func (f *Filter) patchSecrets(patch string) []Finding {
	if found := f.nameSecrets(patch); len(found) > 0 {
		return found
	}
	var added strings.Builder
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "+") {
			added.WriteString(line[1:])
		}
	}
	return f.codeSecrets(added.String())
}

// codeSecrets lists the secrets in what a patch adds, which is never rewritten. Source code is
// full of words that look like secrets when they are glued together: in pieces
// only tokens and known secrets are looked for.
func (f *Filter) codeSecrets(text string) (found []Finding) {
	tell := func(mask, kind string, line int) {
		if mask == redact.Redacted {
			mask = kind // says more
		}
		found = append(found, Finding{FoundSecret, mask, fmt.Sprintf("added line %d", line)})
	}
	for _, m := range f.o.Sanitizer.FindSecrets(text) {
		if len(found) == maxFindings {
			return found
		}
		tell(m.Token, m.Kind, m.Line)
	}
	for _, m := range f.glued(text) {
		if len(found) == 0 && (m.Known || m.Kind == redact.KindToken) {
			tell(m.Token, m.Kind, 1+strings.Count(text[:m.Start], "\n"))
		}
	}
	return found
}
