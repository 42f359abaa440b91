package scan

import "strings"

// bag counts hashes, up to a limit.
type bag struct {
	n    map[uint64]int32
	full *bool // told where the limit was met
}

func newBag(full *bool) bag { return bag{map[uint64]int32{}, full} }

func (b bag) put(h uint64) {
	if _, there := b.n[h]; !there && len(b.n) >= maxBag {
		*b.full = true
		return
	}
	b.n[h]++
}

// take removes one of h and reports whether there was any.
func (b bag) take(h uint64) bool {
	if b.n[h] <= 0 {
		return false
	}
	b.n[h]--
	return true
}

// hash is that of a text without regard to white space; never 0. FNV-1a: who
// writes a patch could make two lines collide, and would gain a TODO that is
// taken for a moved one.
func hash(s string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for w := range strings.FieldsSeq(s) {
		for i := range len(w) {
			h = (h ^ uint64(w[i])) * prime
		}
		h = (h ^ ' ') * prime
	}
	return max(h, 1)
}
