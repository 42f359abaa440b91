package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"net/url"
	"slices"
	"strings"
)

// MinKnown is the length in bytes below which a known value is not masked: a
// shorter one stands in too many innocent places.
const MinKnown = 8

// minLine is the length in bytes from which a line of base64 of a known value,
// such as a key, is masked on its own.
const minLine = 40

// forms lists the known values and how they look when they were encoded on
// their way, without doubles: the one list of what is looked for in what is kept
// and in what leaves (docs/decisions/040).
func forms(known []string) []string {
	var all []string
	for _, v := range known {
		trimmed := strings.TrimSpace(v) // a file's last line break is no part of the key in it
		if len(trimmed) < MinKnown {
			continue
		}
		all = append(all, encoded(trimmed)...)
		for line := range strings.Lines(trimmed) {
			if line = strings.TrimSpace(line); len(line) >= minLine && len(line) < len(trimmed) && run(line, 0, alnum|b64) == len(line) {
				all = append(all, line)
			}
		}
	}
	// No mask can be masked again, so a value within one is none.
	all = slices.DeleteFunc(all, func(f string) bool {
		return len(f) < MinKnown || slices.ContainsFunc(Tokens(), func(mask string) bool { return strings.Contains(mask, f) })
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// encoded lists the forms of one value.
func encoded(v string) []string {
	all := []string{
		v,
		hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)),
		strings.ReplaceAll(v, "'", `'\''`), backslashed(v, "\"$`\\"), backslashed(v, " \t\"'\\?*[]{}()<>|&;$`!^,"),
	}
	for _, u := range []string{
		url.QueryEscape(v), url.PathEscape(v), percent(v, "-_.~/"), percent(v, "-_.~"), percent(v, "-_.!~*'()"), percent(v, ""),
		strings.ReplaceAll(percent(v, "*-._ "), " ", "+"),
	} {
		all = append(all, u, lowerHex(u))
	}
	quoted, _ := json.Marshal(v) // a string cannot fail
	ascii := strings.Trim(fmt.Sprintf("%+q", v), `"`)
	all = append(all, unquote(string(quoted)), unquote(plainJSON(v)), strings.ReplaceAll(unquote(plainJSON(v)), "/", `\/`), ascii)
	// JSON in JSON: the arguments of a call in the body of a request.
	twice, _ := json.Marshal(unquote(plainJSON(v)))
	all = append(all, unquote(string(twice)), unquote(plainJSON(unquote(plainJSON(v)))))
	for _, pairs := range []string{fmt.Sprintf("% x", v), fmt.Sprintf("% X", v)} { // as od, openssl and xxd print bytes, and languages write them
		for _, between := range []string{" ", ":", ", 0x", `\x`} {
			all = append(all, strings.ReplaceAll(pairs, " ", between))
		}
	}
	for lead := range 3 {
		all = append(all, inner(v, lead, base64.RawStdEncoding), inner(v, lead, base64.RawURLEncoding))
	}
	return all
}

func unquote(s string) string { return s[1 : len(s)-1] }

// plainJSON is v as most languages write it in JSON, where < > & stay.
func plainJSON(v string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// backslashed puts a backslash before each of some characters, as a shell reads
// them within double quotes and outside of any.
func backslashed(v, special string) string {
	var b strings.Builder
	for i := range len(v) {
		if strings.IndexByte(special, v[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// percent escapes every byte but letters, digits and those of keep.
func percent(v, keep string) string {
	var b strings.Builder
	for i := range len(v) {
		if is(v[i], alnum) && keep != "" || strings.IndexByte(keep, v[i]) >= 0 {
			b.WriteByte(v[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", v[i])
		}
	}
	return b.String()
}

// lowerHex turns the escapes of an URL to lower case.
func lowerHex(u string) string {
	b := []byte(u)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(u[i:i+3]))
			i += 2
		}
	}
	return string(b)
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

// matcher finds many values at once. It hashes four bytes at every fifth
// position; the table knows those four bytes at each of the five places at which
// they can stand in a value's first eight, so none is passed over.
type matcher struct {
	bits    []uint64 // one for each hash of four bytes
	shift   uint8    // of a product, to such a hash
	refs    map[uint32][]valueRef
	values  []string
	longest int // bytes of the longest value
}

// valueRef says that a value begins offset bytes before the hashed four.
type valueRef struct {
	value  int32
	offset int8
}

const (
	quad   = 4
	stride = MinKnown - quad + 1
)

func newMatcher(values []string) *matcher {
	if len(values) == 0 {
		return nil
	}
	// About one bit in fifty is set, and the table stays within the cache.
	size := min(max(bits.Len(uint(len(values)*stride*32)), 13), 20)
	m := &matcher{bits: make([]uint64, 1<<size/64), shift: uint8(32 - size), refs: map[uint32][]valueRef{}, values: values}
	for i, v := range values {
		m.longest = max(m.longest, len(v))
		for off := range stride {
			h := m.hash(uint32(v[off]) | uint32(v[off+1])<<8 | uint32(v[off+2])<<16 | uint32(v[off+3])<<24)
			m.bits[h/64] |= 1 << (h % 64)
			m.refs[h] = append(m.refs[h], valueRef{int32(i), int8(off)})
		}
	}
	return m
}

func (m *matcher) hash(x uint32) uint32 { return x * 0x9E3779B1 >> m.shift }

// find appends to spans where the values stand in s; most of those that overlap
// are one.
func (m *matcher) find(s string, spans []span) []span {
	first := len(spans)
	set, shift := m.bits, m.shift&31
	for i := 0; i+quad <= len(s); i += stride {
		x := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
		h := x * 0x9E3779B1 >> shift
		if set[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for _, r := range m.refs[h] {
			start := i - int(r.offset)
			if start < 0 {
				continue
			}
			end := written(s, start, m.values[r.value])
			if end == 0 {
				continue
			}
			if n := len(spans); n > first && start < spans[n-1].end && end > spans[n-1].start {
				spans[n-1].start, spans[n-1].end = min(start, spans[n-1].start), max(end, spans[n-1].end)
			} else {
				spans = append(spans, span{start, end, Redacted, kindKnown})
			}
		}
	}
	return spans
}

// written returns where the value v ends that begins at s[start], in one piece or
// in several of which the first has four bytes; 0 where it does not stand there.
func written(s string, start int, v string) int {
	at := start
	for i := range len(v) {
		if at < len(s) && s[at] == v[i] {
			at++
			continue
		}
		if i < quad || at-start > len(v)+maxPieces {
			return 0
		}
		if at, _ = Seam(s, at); at == 0 || at == len(s) || s[at] != v[i] {
			return 0
		}
		at++
	}
	return at
}
