// Package redact is the one sanitizer: what it returns may be stored, logged or sent to a cloud
// model (store-v2 §3.3, route §7). It reads and replaces text; it does no I/O, keeps no state
// between calls and imports nothing of ours.
package redact

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// The masks that stand where a secret stood: those of store-v2 §3.3, and that
// of route §7 for all else.
const (
	GitHubToken = "[GITHUB_TOKEN]"
	OpenAIKey   = "[OPENAI_KEY]"
	GitLabToken = "[GITLAB_TOKEN]"
	Email       = "[EMAIL]"
	Redacted    = "[REDACTED]"
)

// Tokens lists every mask, in a fixed order.
func Tokens() []string {
	return []string{GitHubToken, OpenAIKey, GitLabToken, Email, Redacted}
}

// Opaque is text of a model provider that must return to it byte for byte: a
// signature, an encrypted reasoning item, the id of a call. No redaction
// touches a field of this type, wherever a record is redacted; a field of type
// string is redacted. What people or a model wrote is never Opaque.
type Opaque string

// Sanitizer masks secrets. Any number of goroutines may use it; all that changes
// is that it learns values. The zero value knows the built-in patterns only.
//
// There are three measures. Its own is for the ledger, through which the files of a
// repository pass: what has the form of a secret, known values, e-mail addresses
// (store-v2 §3.3), and the value of a name such as api_key where it looks random.
// Numbers and words in source code stay, since a masked text cannot be edited.
// Strict, for conversations and logs, also masks whatever stands under such a name,
// telephone and payment card numbers (route §7). Personal, for what leaves the
// machine, is the ledger's measure and these numbers.
type Sanitizer struct {
	known   *atomic.Pointer[matcher] // of New, shared with what is made of it; nil of the zero value
	extra   []*regexp.Regexp
	numbers bool // telephone and card numbers are masked
	strict  bool // and whatever stands under the name of a secret
}

// New returns a Sanitizer that masks, besides the built-in patterns, every
// value of known that is at least MinKnown bytes long, also in its URL-escaped,
// JSON-escaped, base64 and hexadecimal forms, and every non-empty match of
// extra. Neither slice is kept.
func New(known []string, extra []*regexp.Regexp) *Sanitizer {
	z := &Sanitizer{known: new(atomic.Pointer[matcher]), extra: slices.Clone(extra)}
	z.known.Store(newMatcher(forms(known)))
	return z
}

// Learn makes z, and every Sanitizer made of the same one by Personal or Strict,
// mask further values as those of New: tokens that came while the program ran.
// The zero value learns nothing.
func (z *Sanitizer) Learn(values ...string) {
	for z.known != nil {
		was := z.known.Load()
		all := forms(values)
		if was != nil {
			known := func(v string) bool { _, ok := slices.BinarySearch(was.values, v); return ok }
			if all = slices.DeleteFunc(all, known); len(all) == 0 {
				return
			}
			all = append(all, was.values...)
			slices.Sort(all)
		}
		if z.known.CompareAndSwap(was, newMatcher(all)) {
			return
		}
	}
}

// values finds the known values; nil where there are none.
func (z *Sanitizer) values() *matcher {
	if z.known == nil {
		return nil
	}
	return z.known.Load()
}

// Personal returns a Sanitizer that masks, besides what z does, telephone and
// card numbers.
func (z *Sanitizer) Personal() *Sanitizer {
	return &Sanitizer{known: z.known, extra: z.extra, numbers: true, strict: z.strict}
}

// Strict returns a Sanitizer that masks, besides what z and Personal do,
// everything that stands under the name of a secret.
func (z *Sanitizer) Strict() *Sanitizer {
	return &Sanitizer{known: z.known, extra: z.extra, numbers: true, strict: true}
}

// String returns s with every secret replaced by its mask, and s itself,
// without allocating, where it holds none. Everything else is returned byte
// for byte, also where it is not UTF-8. Masks that s already holds are never
// touched, and String(String(s)) == String(s) for every s.
func (z *Sanitizer) String(s string) string {
	// A replacement can uncover a match (what stood left of it is gone), so
	// the law of idempotence is met by running until nothing is found. Each
	// round turns at least one byte outside masks into a mask, so it ends.
	for {
		spans := z.find(s, true)
		if len(spans) == 0 {
			return s
		}
		spans = settle(spans, s)
		if len(spans) == 0 {
			return s
		}
		s = rewrite(s, spans)
	}
}

// Bytes is String for bytes. It returns b itself where b holds no secret, and
// else a new slice; b is never changed.
func (z *Sanitizer) Bytes(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	in := view(b)
	out := z.String(in)
	if len(out) == len(in) && unsafe.StringData(out) == unsafe.StringData(in) {
		return b
	}
	return []byte(out)
}

// view spares a copy of every clean text. It is only read, and not kept:
// rewrite builds a new string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Finding is a secret found in a text.
type Finding struct {
	Token string // the mask that String would put there
	Kind  string // what it is, e.g. "private key"
	Line  int    // the line of its first byte, from 1
}

// FindSecrets lists the secrets of s in order. What is masked for privacy only
// (e-mail addresses, numbers), or only because of the name beside it, is none:
// a patch may well hold an address, or a password made up for a test.
func (z *Sanitizer) FindSecrets(s string) []Finding {
	var found []Finding
	line, at := 1, 0
	for _, p := range z.secrets(s) {
		line += strings.Count(s[at:p.start], "\n")
		at = p.start
		found = append(found, Finding{Token: p.token, Kind: p.kind, Line: line})
	}
	return found
}

// Hide returns s with mask in the place of each of its secrets: those that
// FindSecrets lists, and the values of names that say so.
func (z *Sanitizer) Hide(s, mask string) string {
	for _, p := range slices.Backward(settle(z.find(s, false), s)) {
		s = s[:p.start] + mask + s[p.end:]
	}
	return s
}

func (z *Sanitizer) secrets(s string) []span {
	spans := z.find(s, false)
	spans = slices.DeleteFunc(spans, func(p span) bool { return p.kind == kindNamed })
	if len(spans) == 0 {
		return nil
	}
	return settle(spans, s)
}

// ContainsMask returns the first mask that stands in s.
func ContainsMask(s string) (token string, ok bool) {
	Masks(s)(func(_ int, t string) bool {
		token, ok = t, true
		return false
	})
	return token, ok
}

// Masks yields the masks that stand in s, in order, each with where it begins.
func Masks(s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; ; {
			j := strings.IndexByte(s[i:], '[')
			if j < 0 {
				return
			}
			i += j
			t := maskAt(s, i)
			if t != "" && !yield(i, t) {
				return
			}
			i += max(len(t), 1)
		}
	}
}

// maskAt returns the mask that starts at s[i], or "".
func maskAt(s string, i int) string {
	if i+1 >= len(s) || s[i] != '[' || s[i+1] < 'E' || s[i+1] > 'R' {
		return ""
	}
	rest := s[i:]
	for _, t := range [...]string{GitHubToken, OpenAIKey, GitLabToken, Email, Redacted} {
		if strings.HasPrefix(rest, t) {
			return t
		}
	}
	return ""
}

// span is a secret at s[start:end].
type span struct {
	start, end int
	token      string
	kind       string
}

// find lists everything in s that looks like a secret, in no order and perhaps
// overlapping.
func (z *Sanitizer) find(s string, emails bool) []span {
	spans := scan(s, emails, z.numbers && emails, z.strict && emails)
	if known := z.values(); known != nil {
		spans = known.find(s, spans)
	}
	for _, re := range z.extra {
		if prefix, _ := re.LiteralPrefix(); prefix != "" && !strings.Contains(s, prefix) {
			continue
		}
		for _, m := range re.FindAllStringIndex(s, -1) {
			if m[1] > m[0] {
				spans = append(spans, span{m[0], m[1], Redacted, kindPattern})
			}
		}
	}
	return spans
}

// settle turns raw matches into the spans to replace: in order, apart from each
// other, and outside the masks that s already holds. Matches that overlap become
// one, so that no end of the shorter one is left over; the one that says most of
// them names it.
func settle(raw []span, s string) []span {
	spans := clip(raw, s)
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.token, b.token), cmp.Compare(a.kind, b.kind))
	})
	out := spans[:0]
	best := 0 // bytes of the match that named the last span of out
	for _, p := range spans {
		if len(out) == 0 || p.start >= out[len(out)-1].end {
			out = append(out, p)
			best = p.end - p.start
			continue
		}
		last := &out[len(out)-1]
		if r, old := rank(p.token), rank(last.token); r > old || r == old && p.end-p.start > best {
			last.token, last.kind, best = p.token, p.kind, p.end-p.start
		}
		last.end = max(last.end, p.end)
	}
	return out
}

// rank orders masks by how much they say of what was there.
func rank(token string) int {
	switch token {
	case Email:
		return 0
	case Redacted:
		return 1
	}
	return 2
}

// clip cuts the existing masks of s out of the spans.
func clip(raw []span, s string) []span {
	var masks []span
	for at, t := range Masks(s) {
		masks = append(masks, span{start: at, end: at + len(t)})
	}
	if len(masks) == 0 {
		return raw
	}
	out := make([]span, 0, len(raw))
	for _, p := range raw {
		i, _ := slices.BinarySearchFunc(masks, p.start, func(m span, at int) int { return cmp.Compare(m.end, at+1) })
		for ; i < len(masks) && masks[i].start < p.end; i++ {
			if p.start < masks[i].start {
				out = append(out, span{p.start, masks[i].start, p.token, p.kind})
			}
			p.start = masks[i].end
		}
		if p.start < p.end {
			out = append(out, p)
		}
	}
	return out
}

func rewrite(s string, spans []span) string {
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, p := range spans {
		b.WriteString(s[at:p.start])
		b.WriteString(p.token)
		at = p.end
	}
	b.WriteString(s[at:])
	return b.String()
}
