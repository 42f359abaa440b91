package redact

import (
	"slices"
	"strings"
)

// pattern is a kind of secret and where to look for it. The search looks at
// three bytes at every second position, so a pattern names four bytes that each
// of its texts holds, or three and what may stand beside them.
type pattern struct {
	anchor string // 3 or 4 bytes, in lower case; ASCII letters match in either case
	left   string // with a 3-byte anchor: what may stand before it, in lower case; "" means that anything may follow
	find   func(c *scanner, at int)
}

// any3 are the bytes that may stand beside a 3-byte anchor where its pattern
// does not say: all of them.
var any3 = func() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}()

// ref says that the anchor of patterns[pattern] begins offset bytes before the
// position that was looked at.
type ref struct{ pattern, offset int8 }

const (
	gramBits = 15
	fold     = 0x202020 // turns letters to lower case; what else it changes is told apart by the pattern
)

// grams is the search's table: one bit for every hash of three bytes, and the
// patterns behind it.
type grams struct {
	bits [1 << gramBits / 64]uint64
	list [1 << gramBits]uint8 // by hash: which of refs, 0 for none
	refs [][]ref
}

// gram hashes the low three bytes of x, in either case.
func gram(x uint32) uint16 { return uint16((x | fold) << 8 * 0x9E3779B1 >> (32 - gramBits)) }

func newGrams(patterns []pattern) *grams {
	found := map[uint16][]ref{}
	add := func(text string, r ref) {
		h := gram(uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16)
		if !slices.Contains(found[h], r) {
			found[h] = append(found[h], r)
		}
	}
	for i, p := range patterns {
		add(p.anchor[:3], ref{int8(i), 0})
		switch {
		case len(p.anchor) == 4:
			add(p.anchor[1:], ref{int8(i), 1})
		case p.left != "":
			for j := range len(p.left) {
				add(p.left[j:j+1]+p.anchor[:2], ref{int8(i), -1})
			}
		default:
			for j := range len(any3) {
				add(p.anchor[1:]+any3[j:j+1], ref{int8(i), 1})
			}
		}
	}
	g := &grams{refs: make([][]ref, 1)}
	for h, refs := range found {
		g.bits[h/64] |= 1 << (h % 64)
		n := slices.IndexFunc(g.refs, func(old []ref) bool { return slices.Equal(old, refs) })
		if n < 0 {
			n = len(g.refs)
			g.refs = append(g.refs, refs)
		}
		g.list[h] = uint8(n)
	}
	return g
}

// scanner is one pass over a text.
type scanner struct {
	s      string
	strict bool
	spans  []span
	seen   int     // end of the last token run: prefixes within it are no tokens of their own
	read   int     // end of the last cookie, and of the last list of values, looked at
	dull   [16]int // by class: end of the last run that no token was in
	logins []span  // user:password of addresses, whose "@" makes no e-mail address
}

func (c *scanner) add(p span) {
	if p.end > p.start {
		c.spans = append(c.spans, p)
	}
}

// scan lists what the built-in patterns find in s. It looks at every other byte
// of clean text, and no pattern reads further than its own run or a fixed
// distance, which keeps it linear.
func scan(s string, emails, strict bool) []span {
	c := scanner{s: s, strict: strict}
	g := builtin
	i := 0
	for ; i+4 <= len(s); i += 2 {
		x := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
		if h := gram(x); g.bits[h/64]>>(h%64)&1 != 0 {
			c.look(g, h, i)
		}
	}
	if i+3 == len(s) {
		c.look(g, gram(uint32(s[i])|uint32(s[i+1])<<8|uint32(s[i+2])<<16), i)
	}
	if emails {
		c.emails()
	}
	if strict {
		c.numbers()
	}
	return c.spans
}

func (c *scanner) look(g *grams, h uint16, i int) {
	for _, r := range g.refs[g.list[h]] {
		at := i - int(r.offset)
		p := &patterns[r.pattern]
		if at >= 0 && at+len(p.anchor) <= len(c.s) && equalFold(c.s[at:at+len(p.anchor)], p.anchor) {
			p.find(c, at)
		}
	}
}

// equalFold compares ASCII letters in either case; lower is in lower case.
func equalFold(s, lower string) bool {
	for i := range len(lower) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func (c *scanner) emails() {
	logins := c.logins
	for at := 0; ; at++ {
		n := strings.IndexByte(c.s[at:], '@')
		if n < 0 {
			return
		}
		at += n
		for len(logins) > 0 && logins[0].end < at {
			logins = logins[1:]
		}
		if len(logins) == 0 || at < logins[0].start {
			c.add(email(c.s, at))
		}
	}
}
