package broker

import (
	"slices"
	"strings"
)

// The alphabets of base85: Adobe's and btoa's, that of RFC 1924 (git, Python's
// b85encode), and that of ZeroMQ.
var alphabets85 = [...]string{
	"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
	"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
}

// encoded85 adds the runs of a view that hold a secret in base85.
func (f *Filter) encoded85(found [][2]int, v *view, depth int) [][2]int {
	for _, alphabet := range alphabets85 {
		digit := digits85(alphabet)
		for i := 0; i < len(v.b); {
			if digit[v.b[i]] == 0 {
				i++
				continue
			}
			end := i
			for end < len(v.b) && digit[v.b[end]] != 0 {
				end++
			}
			if end-i >= minEncoded && f.hides85(v.b[i:end], &digit, depth) {
				found = append(found, v.span(i, end))
			}
			i = end
		}
	}
	return found
}

// digits85 says of each byte which digit it is, plus one; 0 for none.
func digits85(alphabet string) (d [256]byte) {
	for i := range len(alphabet) {
		d[alphabet[i]] = byte(i + 1)
	}
	return d
}

// hides85 reports whether a run is a text with a secret in it once it is
// decoded; what stands before it may be digits as well.
func (f *Filter) hides85(run []byte, digit *[256]byte, depth int) bool {
	for lead := range min(5, len(run)) {
		text := decode85(run[lead:], digit)
		if len(text) < minBones {
			continue
		}
		// What follows the run may be digits as well: the text ends where it
		// no longer is one.
		if n := strings.IndexFunc(text, func(r rune) bool { return r < '\t' || r >= 0x7f }); n >= 0 {
			text = text[:n]
		}
		if len(text) >= minBones && readable(text) && f.holds(text, depth-1) {
			return true
		}
	}
	return false
}

// decode85 decodes whole groups and what a last one that is shorter stands for,
// as far as they are any.
func decode85(run []byte, digit *[256]byte) string {
	out := make([]byte, 0, len(run))
	for group := range slices.Chunk(run, 5) {
		value := uint64(0)
		for i := range 5 {
			d := uint64(84)
			if i < len(group) {
				d = uint64(digit[group[i]] - 1)
			}
			value = value*85 + d
		}
		if value >= 1<<32 {
			break
		}
		four := [4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}
		out = append(out, four[:max(0, len(group)-1)]...)
	}
	return string(out)
}
