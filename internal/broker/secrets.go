package broker

import (
	"bytes"
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/redact"
)

// view is a text as it may be read, and where each of its bytes stands in the
// text that it was made from.
type view struct {
	b    []byte
	from []int32
	to   []int32
}

func (v *view) add(c byte, from, to int32) {
	v.b, v.from, v.to = append(v.b, c), append(v.from, from), append(v.to, to)
}

func (v *view) copy(o *view, i int) { v.add(o.b[i], o.from[i], o.to[i]) }

// span is where the bytes from start to end stand in the text, also of a view
// that is turned.
func (v *view) span(start, end int) [2]int {
	return [2]int{int(min(v.from[start], v.from[end-1])), int(max(v.to[start], v.to[end-1]))}
}

func newView(n int) *view {
	return &view{make([]byte, 0, n), make([]int32, 0, n), make([]int32, 0, n)}
}

// The least lengths, in bytes, of what counts as a secret only where a text is
// read otherwise than it stands: words that are glued together look like one.
const (
	minGluedToken = 20
	minBones      = 10
	minEncoded    = 16
	maxDepth      = 3 // encodings within encodings
)

// secrets masks what looks like a secret, or is a known one, in whatever way it
// is written. Of a secret in pieces the first may look like one itself: what
// overlaps is masked as one.
func (f *Filter) secrets(_ Format, s string) (edits []edit) {
	for _, m := range f.o.Sanitizer.Locate(s) {
		edits = append(edits, edit{m.Start, m.End, m.Token, FoundSecret})
	}
	for _, m := range f.disguised(s, maxDepth) {
		edits = append(edits, edit{m[0], m[1], redact.Redacted, FoundSecret})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	out := edits[:0]
	for _, e := range edits {
		if n := len(out) - 1; n >= 0 && e.start < out[n].end {
			out[n].end = max(out[n].end, e.end)
			continue
		}
		out = append(out, e)
	}
	return out
}

// disguised lists where secrets stand in s that are encoded, split or spelt.
func (f *Filter) disguised(s string, depth int) (found [][2]int) {
	plain := decoded(s)
	joined := joinedLines(plain)
	for _, v := range []*view{plain, joined, seamless(plain), unmarked(joined)} {
		found = f.locate(found, v)
	}
	found = f.locate(found, turned(joined))
	found = f.locate(found, rotated(joined))
	found = f.known(found, joined)
	if bare := untagged(joined); len(bare.b) != len(joined.b) {
		found = f.known(f.locate(found, unmarked(bare)), bare)
	}
	if depth > 0 {
		found = f.encoded85(found, verbatim(s), depth)
		found = f.encoded(found, plain, depth)
		back := turned(joined)
		found = f.encoded85(f.encoded(found, back, depth), back, depth)
		if len(joined.b) != len(plain.b) {
			found = f.encoded85(found, joined, depth)
			found = f.encoded(found, joined, depth)
		}
	}
	return slices.DeleteFunc(found, func(m [2]int) bool {
		mask := s[m[0]:m[1]]
		return slices.Contains(redact.Tokens(), mask) // what is masked is no secret
	})
}

// locate adds the secrets of a view.
func (f *Filter) locate(found [][2]int, v *view) [][2]int {
	for _, m := range f.o.Sanitizer.Locate(string(v.b)) {
		if m.Known || m.Secret && m.End-m.Start >= minGluedToken && strings.ContainsAny(string(v.b[m.Start:m.End]), "0123456789") {
			found = append(found, v.span(m.Start, m.End))
		}
	}
	return found
}

// known adds the known secrets whose letters and digits stand in the view in
// their order, whatever stands between them.
func (f *Filter) known(found [][2]int, v *view) [][2]int {
	if len(f.bones) == 0 {
		return found
	}
	w := newView(len(v.b))
	for i, c := range v.b {
		if c >= 'A' && c <= 'Z' {
			w.add(c|0x20, v.from[i], v.to[i])
		} else if alnum(c) {
			w.copy(v, i)
		}
	}
	text := string(w.b)
	for _, b := range f.bones {
		for at := 0; ; {
			i := strings.Index(text[at:], string(b))
			if i < 0 {
				break
			}
			at += i + len(b)
			found = append(found, [2]int{int(w.from[at-len(b)]), int(w.to[at-1])})
		}
	}
	return found
}

// skeletons are the letters and digits, in lower case, of the known secrets in
// the forms that people and models put them into.
func skeletons(known []string) (all [][]byte) {
	for _, k := range known {
		k = strings.TrimSpace(k)
		if len(k) < redact.MinKnown || slices.Contains(redact.Tokens(), k) {
			continue
		}
		forms := []string{k, backwards(k), rot13(k), hex.EncodeToString([]byte(k)), base32.StdEncoding.EncodeToString([]byte(k)), backwards(base64.StdEncoding.EncodeToString([]byte(k)))}
		for lead := range 3 {
			text := base64.RawStdEncoding.EncodeToString(append(make([]byte, lead), k...))
			forms = append(forms, text[(lead*8+5)/6:(lead+len(k))*8/6])
		}
		var decimal, x, code, binary strings.Builder
		for _, c := range []byte(k) {
			decimal.WriteString(strconv.Itoa(int(c)))
			fmt.Fprintf(&x, "0x%02x", c)
			fmt.Fprintf(&code, "x%02x", c)
			fmt.Fprintf(&binary, "%08b", c)
		}
		forms = append(forms, decimal.String(), x.String(), code.String(), binary.String())
		for _, form := range forms {
			if b := bones(form); len(b) >= minBones {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, slices.Compare[[]byte])
	return slices.CompactFunc(all, slices.Equal[[]byte])
}

func bones(s string) (b []byte) {
	for i := range len(s) {
		if alnum(s[i]) {
			c := s[i]
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			b = append(b, c)
		}
	}
	return b
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func rot13(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = rot(c)
	}
	return string(b)
}

func rot(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a' + (c-'a'+13)%26
	case c >= 'A' && c <= 'Z':
		return 'A' + (c-'A'+13)%26
	}
	return c
}

// verbatim is a text as it stands: base85 has the letters of escapes.
func verbatim(s string) *view {
	v := newView(len(s))
	for i := range len(s) {
		v.add(s[i], int32(i), int32(i+1))
	}
	return v
}

// decoded is a text with character references, escapes of addresses, of JSON
// and of programs, and the look-alikes of ASCII resolved.
func decoded(s string) *view {
	v := newView(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if n, text := unescape(s[i:]); n > 0 {
			for j := range len(text) {
				v.add(text[j], int32(i), int32(i+n))
			}
			i += n
			continue
		}
		if c < utf8.RuneSelf {
			v.add(c, int32(i), int32(i+1))
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch a := plainLetter(r); {
		case a > 0:
			v.add(a, int32(i), int32(i+n))
		case hiddenRune(r):
		default:
			for j := range n {
				v.add(s[i+j], int32(i), int32(i+n))
			}
		}
		i += n
	}
	return v
}

// unescape reads one escape at the beginning of s.
func unescape(s string) (n int, text string) {
	digits := func(from, count int) (int, string) {
		if len(s) < from+count {
			return 0, ""
		}
		x, err := strconv.ParseUint(s[from:from+count], 16, 32)
		if err != nil || x == 0 {
			return 0, ""
		}
		if count == 2 {
			return from + count, string([]byte{byte(x)})
		}
		return from + count, string(rune(x))
	}
	switch {
	case s[0] == '%':
		return digits(1, 2)
	case s[0] == '\\' && len(s) > 1 && s[1] == 'x':
		return digits(2, 2)
	case s[0] == '\\' && len(s) > 1 && s[1] == 'u':
		return digits(2, 4)
	case s[0] == '&':
		if m := reference().FindStringIndex(cut(s, 40)); m != nil && m[0] == 0 {
			if text := html.UnescapeString(s[:m[1]]); text != s[:m[1]] {
				return m[1], text
			}
		}
	}
	return 0, ""
}

// plainLetter is the ASCII letter or digit that a character stands for: a wide
// one, one of mathematics, or one in a circle; 0 where it stands for none.
func plainLetter(r rune) byte {
	switch {
	case r >= 0xff01 && r <= 0xff5e:
		return byte(r - 0xff01 + '!')
	case r >= 0x1d400 && r <= 0x1d6a3:
		if n := (r - 0x1d400) % 52; n < 26 {
			return byte('A' + n)
		} else {
			return byte('a' + n - 26)
		}
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return byte('0' + (r-0x1d7ce)%10)
	case r >= 0x24b6 && r <= 0x24cf:
		return byte('A' + r - 0x24b6)
	case r >= 0x24d0 && r <= 0x24e9:
		return byte('a' + r - 0x24d0)
	}
	return 0
}

// joinedLines is a view without the ends of its lines, and without what a
// quotation, a list or a comment puts before the next.
func joinedLines(v *view) *view {
	w := newView(len(v.b))
	for i := 0; i < len(v.b); {
		if v.b[i] != '\n' {
			w.copy(v, i)
			i++
			continue
		}
		for n := len(w.b); n > 0 && strings.IndexByte(" \t\\|+\"'", w.b[n-1]) >= 0; n-- {
			w.b, w.from, w.to = w.b[:n-1], w.from[:n-1], w.to[:n-1]
		}
		for i++; i < len(v.b) && strings.IndexByte(" \t\n>|*+#/\"'", v.b[i]) >= 0; i++ {
		}
		if i+1 < len(v.b) && v.b[i] == '-' && v.b[i+1] == ' ' {
			i += 2
		}
	}
	return w
}

// unmarked is a view without emphasis, quotes and what joins the parts of a
// string in a program.
func unmarked(v *view) *view {
	const marks = "*`~\\\"'+"
	w := newView(len(v.b))
	for i, c := range v.b {
		if strings.IndexByte(marks, c) >= 0 {
			continue
		}
		if c == ' ' && (i > 0 && strings.IndexByte(marks, v.b[i-1]) >= 0 || i+1 < len(v.b) && strings.IndexByte(marks, v.b[i+1]) >= 0) {
			continue
		}
		w.copy(v, i)
	}
	return w
}

// seamless is a view without what stands between the pieces of one text.
func seamless(v *view) *view {
	s, w := string(v.b), newView(len(v.b))
	for i := 0; i < len(s); {
		if strings.IndexByte("\"'`\\\n\r", s[i]) >= 0 {
			if next, _ := redact.Seam(s, i); next > 0 {
				i = next
				continue
			}
		}
		w.copy(v, i)
		i++
	}
	return w
}

// maxTag is how long a tag may be, in bytes, that is read as one.
const maxTag = 200

// untagged is a view without the tags of HTML; its comments are taken out as
// hidden text.
func untagged(v *view) *view {
	w := newView(len(v.b))
	for i := 0; i < len(v.b); i++ {
		if v.b[i] == '<' && i+1 < len(v.b) && (v.b[i+1]|0x20 >= 'a' && v.b[i+1]|0x20 <= 'z' || v.b[i+1] == '/') {
			if n := bytes.IndexByte(v.b[i:min(len(v.b), i+maxTag)], '>'); n > 0 {
				i += n
				continue
			}
		}
		w.copy(v, i)
	}
	return w
}

// turned is a view from its end to its beginning.
func turned(v *view) *view {
	w := newView(len(v.b))
	for i := len(v.b) - 1; i >= 0; i-- {
		w.copy(v, i)
	}
	return w
}

func rotated(v *view) *view {
	w := newView(len(v.b))
	for i, c := range v.b {
		w.add(rot(c), v.from[i], v.to[i])
	}
	return w
}

// encoded adds the runs of a view that hold a secret in base64, base32 or
// hexadecimal.
func (f *Filter) encoded(found [][2]int, v *view, depth int) [][2]int {
	for i := 0; i < len(v.b); {
		if !base64Byte(v.b[i]) {
			i++
			continue
		}
		end := i
		for end < len(v.b) && base64Byte(v.b[end]) {
			end++
		}
		if end-i >= minEncoded && f.hides(string(v.b[i:end]), depth) {
			found = append(found, v.span(i, end))
		}
		i = end
	}
	return found
}

func base64Byte(c byte) bool { return alnum(c) || c == '+' || c == '/' || c == '-' || c == '_' }

// hides reports whether a run is a text with a secret in it once it is decoded.
func (f *Filter) hides(run string, depth int) bool {
	var texts []string
	if b, err := hex.DecodeString(run[:len(run)&^1]); err == nil {
		texts = append(texts, string(b))
	}
	if b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(run)); err == nil {
		texts = append(texts, string(b))
	}
	std := strings.NewReplacer("-", "+", "_", "/").Replace(run)
	for lead := range 4 {
		part := std[min(lead, len(std)):]
		if len(part)%4 == 1 {
			part = part[:len(part)-1]
		}
		if b, err := base64.RawStdEncoding.DecodeString(part); err == nil {
			texts = append(texts, string(b))
		}
	}
	return slices.ContainsFunc(texts, func(t string) bool { return len(t) >= redact.MinKnown && readable(t) && f.holds(t, depth-1) })
}

// readable reports whether most of a decoded text is text.
func readable(s string) bool {
	n := 0
	for i := range len(s) {
		if s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n' || s[i] == '\t' {
			n++
		}
	}
	return n*10 >= len(s)*7
}

// holds reports whether a text holds a secret in any form.
func (f *Filter) holds(s string, depth int) bool {
	for _, m := range f.o.Sanitizer.Locate(s) {
		if m.Secret {
			return true
		}
	}
	return len(f.disguised(s, depth)) > 0
}

// holdsSecret reports whether a text holds a secret in any form.
func (f *Filter) holdsSecret(s string) bool { return f.holds(s, maxDepth) }

const (
	patchChunk   = 1 << 20
	patchOverlap = 8 << 10
)

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
	found := f.codeSecrets(added.String())
	for i := range found {
		found[i].Place = "added " + found[i].Place
	}
	return found
}

// codeSecrets lists the secrets in a text that is never rewritten. Source code is
// full of words that look like secrets when they are glued together: in pieces
// only tokens are looked for, and in disguise only known secrets.
func (f *Filter) codeSecrets(text string) (found []Finding) {
	for _, m := range f.o.Sanitizer.FindSecrets(text) {
		if len(found) == maxFindings {
			return found
		}
		found = append(found, Finding{FoundSecret, named(m.Token, m.Kind), fmt.Sprintf("line %d", m.Line)})
	}
	for at := 0; at < len(text) && len(found) == 0; at += patchChunk {
		part := text[at:min(len(text), at+patchChunk+patchOverlap)]
		tell := func(name string, i int) {
			found = append(found, Finding{FoundSecret, name, fmt.Sprintf("line %d", 1+strings.Count(text[:at+i], "\n"))})
		}
		v := seamless(verbatim(part))
		for _, m := range f.o.Sanitizer.Locate(string(v.b)) {
			if m.Known || m.Kind == redact.KindToken {
				tell(named(m.Token, m.Kind), v.span(m.Start, m.End)[0])
				break
			}
		}
		if m := f.known(nil, joinedLines(decoded(part))); len(m) > 0 && len(found) == 0 {
			tell(redact.Redacted, m[0][0])
		}
	}
	return found
}

// named is what a secret is called whose mask says little.
func named(mask, kind string) string {
	if mask == redact.Redacted {
		return kind
	}
	return mask
}
