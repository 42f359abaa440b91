package redact

import (
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"
)

// pattern is a kind of secret and where to look for it. The search looks at
// three bytes at every second position, so a pattern names four bytes that each
// of its texts holds, or three and what may stand before or behind them.
type pattern struct {
	anchor string // 3 or 4 bytes, in lower case; ASCII letters match in either case
	left   string // with a 3-byte anchor: the bytes before it, in lower case
	right  string // or the bytes behind it
	finder finder
	text   string // of a prefix or a keyword
	offset int    // of the anchor in text
	class  uint8  // of a prefix: what follows,
	body   int    // at least so many of them
	mask   string
}

// finder says which function a pattern is for; a function value would cost an
// allocation for every text.
type finder uint8

// edge are bytes before which a word begins: the ends of the escapes \n, \t, \r,
// \u0022, \u003c and \u0026 among them, and those of characters beyond ASCII.
var edge = func() string {
	b := []byte(" \t\n\"'`=:([{,;/<>|@&+-_.nrt26ce")
	for c := 0x80; c < 0xc0; c++ {
		b = append(b, byte(c))
	}
	return string(b)
}()

// ref says that the anchor of patterns[pattern] begins offset bytes before the
// position that was looked at.
type ref struct{ pattern, offset int8 }

const (
	gramBits = 16
	words    = 1 << gramBits / 64
	fold     = 0x202020 // turns letters to lower case; what else it changes is told apart by the pattern
)

// grams is the search's table: one bit for every hash of three bytes, and the
// patterns behind it.
type grams struct {
	bits [words]uint64
	list [1 << gramBits]uint8 // by hash: which of refs, 0 for none
	refs [][]ref

	patterns []pattern
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
		if len(p.anchor) == 4 {
			add(p.anchor[1:], ref{int8(i), 1})
		}
		for j := range len(p.left) {
			add(p.left[j:j+1]+p.anchor[:2], ref{int8(i), -1})
		}
		for j := range len(p.right) {
			add(p.anchor[1:]+p.right[j:j+1], ref{int8(i), 1})
		}
	}
	g := &grams{refs: make([][]ref, 1), patterns: patterns}
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
func scan(s string, emails, numbers, strict bool) []span {
	c := scanner{s: s, strict: strict}
	g, b := builtin(), unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(b) >= 8; b = b[6:] {
		x := binary.LittleEndian.Uint64(b)
		h0, h1, h2 := gram(uint32(x)), gram(uint32(x>>16)), gram(uint32(x>>32))
		if g.bits[h0/64]&(1<<(h0%64)) != 0 || g.bits[h1/64]&(1<<(h1%64)) != 0 || g.bits[h2/64]&(1<<(h2%64)) != 0 {
			i := len(s) - len(b)
			c.look(g, h0, i)
			c.look(g, h1, i+2)
			c.look(g, h2, i+4)
		}
	}
	i := len(s) - len(b)
	for ; i+3 <= len(s); i += 2 {
		c.look(g, gram(uint32(s[i])|uint32(s[i+1])<<8|uint32(s[i+2])<<16), i)
	}
	if emails {
		c.emails()
	}
	if numbers {
		c.numbers()
	}
	return c.spans
}

func (c *scanner) look(g *grams, h uint16, i int) {
	if g.list[h] == 0 {
		return
	}
	for _, r := range g.refs[g.list[h]] {
		at := i - int(r.offset)
		p := &g.patterns[r.pattern]
		if at >= 0 && at+len(p.anchor) <= len(c.s) && equalFold(c.s[at:at+len(p.anchor)], p.anchor) {
			c.find(p, at)
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
