package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// MinKnown is the length in bytes below which a known value is not masked: a
// shorter one stands in too many innocent places.
const MinKnown = 8

// forms lists the known values and how they look when they were encoded on
// their way, without doubles.
func forms(known []string) []string {
	var all []string
	for _, v := range known {
		if len(v) < MinKnown {
			continue
		}
		quoted, _ := json.Marshal(v) // a string cannot fail
		all = append(all, v,
			url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`),
			hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
			base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)),
		)
		for lead := range 3 {
			all = append(all, inner(v, lead, base64.RawStdEncoding), inner(v, lead, base64.RawURLEncoding))
		}
	}
	all = slices.DeleteFunc(all, func(f string) bool { return len(f) < MinKnown })
	slices.Sort(all)
	return slices.Compact(all)
}

// inner returns the part of v's base64 that stays the same when v stands
// within a longer text, lead bytes behind a multiple of three: what
// "user:password" looks like in basic authentication.
func inner(v string, lead int, enc *base64.Encoding) string {
	text := enc.EncodeToString(append(make([]byte, lead), v...))
	first := (lead*8 + 5) / 6
	last := (lead + len(v)) * 8 / 6
	return text[first:last]
}

// matcher finds many values at once, after Wu and Manber (1994): it looks at
// pairs of bytes, and most pairs allow a jump of several bytes.
type matcher struct {
	shift  [1 << 16]uint8      // by pair: how far the window may move; 0 means compare
	values map[uint16][]string // by the pair that ends the window, longest first
}

// window is how much of each value the shift table knows.
const window = MinKnown

func newMatcher(values []string) *matcher {
	if len(values) == 0 {
		return nil
	}
	m := &matcher{values: map[uint16][]string{}}
	for i := range m.shift {
		m.shift[i] = window - 1
	}
	for _, v := range values {
		for end := 1; end < window; end++ {
			p := pair(v, end)
			m.shift[p] = min(m.shift[p], uint8(window-1-end))
		}
		last := pair(v, window-1)
		m.values[last] = append(m.values[last], v)
	}
	for _, vs := range m.values {
		slices.SortFunc(vs, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
	return m
}

func pair(s string, end int) uint16 { return uint16(s[end-1])<<8 | uint16(s[end]) }

// find appends to spans where the values stand in s; those that overlap are one.
func (m *matcher) find(s string, spans []span) []span {
	first := len(spans)
	for end := window - 1; end < len(s); {
		p := pair(s, end)
		if jump := m.shift[p]; jump > 0 {
			end += int(jump)
			continue
		}
		start := end - (window - 1)
		for _, v := range m.values[p] {
			if !strings.HasPrefix(s[start:], v) {
				continue
			}
			if n := len(spans); n > first && start < spans[n-1].end {
				spans[n-1].end = max(spans[n-1].end, start+len(v))
			} else {
				spans = append(spans, span{start, start + len(v), Secret})
			}
			break
		}
		end++
	}
	return spans
}
