package checks

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"toritsugi/internal/lazyregexp"
)

// MaxSet is how many tests a Set holds: 8 bytes each. Of more it knows that
// there are.
const MaxSet = 1 << 20

// Set is a set of the names of tests, as a hash of each: 8 bytes, so 800 kB for
// 100,000 tests. The zero value is empty. It is written to JSON as base64.
type Set struct {
	sums []uint64 // sorted, each once
	over bool     // there were more than MaxSet
}

// SetOf is the set of some names.
func SetOf(names ...string) Set {
	var b setBuilder
	for _, n := range names {
		b.add(n)
	}
	return b.set()
}

// addresses are what differs between two runs in the name of a test whose
// parameter is an object.
var addresses = lazyregexp.New(`0x[0-9a-fA-F]{6,}`)

func sumOf(name string) uint64 {
	h := sha256.Sum256(addresses().ReplaceAll([]byte(name), []byte("0x")))
	return binary.BigEndian.Uint64(h[:])
}

// Len is how many tests are in the set.
func (s Set) Len() int { return len(s.sums) }

// Has reports whether a test is in the set.
func (s Set) Has(name string) bool {
	if len(s.sums) == 0 {
		return false
	}
	_, found := slices.BinarySearch(s.sums, sumOf(name))
	return found
}

// Less counts the tests of s that are not in o. Those that a full set may have
// left out count where they can hide something: s has them, and o has not.
func (s Set) Less(o Set) int {
	n, k := 0, 0
	for _, sum := range s.sums {
		for k < len(o.sums) && o.sums[k] < sum {
			k++
		}
		if k == len(o.sums) || o.sums[k] != sum {
			n++
		}
	}
	if s.over && !o.over {
		n++
	}
	return n
}

// With is the set with one test more.
func (s Set) With(name string) Set {
	b := setBuilder{Set: Set{slices.Clone(s.sums), s.over}}
	b.add(name)
	return b.set()
}

// Equal reports whether two sets hold the same.
func (s Set) Equal(o Set) bool { return s.over == o.over && slices.Equal(s.sums, o.sums) }

// IsZero reports an empty set, which JSON leaves out.
func (s Set) IsZero() bool { return len(s.sums) == 0 && !s.over }

// MarshalJSON implements json.Marshaler.
func (s Set) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 8*len(s.sums)+1)
	for _, sum := range s.sums {
		raw = binary.BigEndian.AppendUint64(raw, sum)
	}
	if s.over {
		raw = append(raw, '+')
	}
	return json.Marshal(raw)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Set) UnmarshalJSON(data []byte) error {
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("set of tests: %w", err)
	}
	if len(raw)%8 > 1 || len(raw)/8 > MaxSet {
		return fmt.Errorf("set of tests: %d bytes are none, each takes 8 and there are at most %d", base64.StdEncoding.DecodedLen(len(data)), MaxSet)
	}
	*s = Set{over: len(raw)%8 == 1}
	for at := 0; at+8 <= len(raw); at += 8 {
		s.sums = append(s.sums, binary.BigEndian.Uint64(raw[at:]))
	}
	slices.Sort(s.sums)
	s.sums = slices.Compact(s.sums)
	return nil
}

// setBuilder makes a Set of names that come several times and in any order, in
// twice the set's memory.
type setBuilder struct {
	Set
	sorted int // how many of sums are in order
}

func (b *setBuilder) add(name string) {
	if b.sums = append(b.sums, sumOf(name)); len(b.sums) >= max(1024, 2*b.sorted) {
		b.order()
	}
}

func (b *setBuilder) order() {
	slices.Sort(b.sums)
	b.sums = slices.Compact(b.sums)
	if len(b.sums) > MaxSet {
		b.sums, b.over = b.sums[:MaxSet], true
	}
	b.sorted = len(b.sums)
}

func (b *setBuilder) set() Set {
	b.order()
	return Set{slices.Clone(b.sums), b.over}
}

// rest are names of failed tests that there is no room for otherwise.
type rest struct {
	names []string
	size  int
	over  bool // there were more
}

// maxRest is how many bytes they may take.
const maxRest = 4 << 20

func (r *rest) add(name string) {
	name = clip(name, maxName)
	if r.over = r.over || r.size+len(name) > maxRest; !r.over {
		r.names, r.size = append(r.names, name), r.size+len(name)
	}
}

// tell records them, and forgets them.
func (r *rest) tell(s *sink, before string) {
	for _, n := range r.names {
		s.add(Failure{Name: before + n})
	}
	s.set.over = s.set.over || r.over
	*r = rest{}
}
