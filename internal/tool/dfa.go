package tool

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// sieve finds lines that may match a regular expression, at about a
// nanosecond a byte: a deterministic automaton that is built as it is needed.
// It never misses a line that matches, and may name one that does not, since it
// takes any run of bytes beyond ASCII for any such character; the regexp itself
// decides. A sieve is for one goroutine; nil cannot be made of very large
// expressions.
type sieve struct {
	nodes []sieveNode
	first int32 // the node where a match may begin
	words bool  // there is a \b or \B
	edges bool  // there is any assertion

	class  [256]uint32 // of each byte
	width  uint32      // number of classes
	nl, cr uint32      // classes: end of a line; a return, always looked at twice
	bareCR uint32      // class: a return that ends no line

	next   []uint32 // by state + class: the next state, or one of the marks below
	states map[string]uint32
	keys   []string // by number of state
	start  uint32

	work  int      // nodes followed in this find
	mark  []uint32 // by node: in the closure of which round
	round uint32
	stack []int32
	live  []int32 // byte nodes of the closure
}

// sieveNode is an instruction on bytes.
type sieveNode struct {
	op   syntax.InstOp // InstAlt, InstNop, InstEmptyWidth, InstMatch, InstFail, InstRune
	out  int32
	arg  int32 // of InstAlt
	need syntax.EmptyOp
	set  *[4]uint64 // of InstRune
}

func has(set *[4]uint64, b byte) bool { return set[b>>6]>>(b&63)&1 != 0 }
func put(set *[4]uint64, b byte)      { set[b>>6] |= 1 << (b & 63) }

// Marks in next, smaller than any state.
const (
	unknownState = 0
	matchState   = 1
)

// The bounds of a sieve: nodes, and states kept before it starts anew.
const (
	maxSieveNodes  = 4000
	maxSieveStates = 2000
	maxSieveWork   = 4_000_000 // nodes followed in one find: tenths of a second
)

// newSieve returns the sieve of an expression, or nil.
func newSieve(expr string) *sieve {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxSieveNodes {
		return nil
	}
	s := &sieve{nodes: make([]sieveNode, len(prog.Inst)), first: int32(prog.Start)}
	for i := range prog.Inst {
		s.translate(i, &prog.Inst[i])
		if len(s.nodes) > maxSieveNodes {
			return nil
		}
	}
	s.mark = make([]uint32, len(s.nodes))
	s.classes()
	s.forget()
	return s
}

func (s *sieve) translate(i int, in *syntax.Inst) {
	n := sieveNode{op: in.Op, out: int32(in.Out), arg: int32(in.Arg)}
	switch in.Op {
	case syntax.InstAltMatch:
		n.op = syntax.InstAlt
	case syntax.InstCapture:
		n.op = syntax.InstNop
	case syntax.InstEmptyWidth:
		n.need = syntax.EmptyOp(in.Arg)
		s.edges = true
		s.words = s.words || n.need&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		s.runes(i, in)
		return
	}
	s.nodes[i] = n
}

// runes makes the nodes of an instruction that takes a character.
func (s *sieve) runes(i int, in *syntax.Inst) {
	set := new([4]uint64)
	for r := range rune(utf8.RuneSelf) {
		if r != '\n' && matchRune(in, r) {
			put(set, byte(r))
		}
	}
	wide, exact := wideRunes(in)
	if len(wide) == 0 && exact {
		s.nodes[i] = sieveNode{op: syntax.InstRune, out: int32(in.Out), set: set}
		return
	}
	ascii := s.add(sieveNode{op: syntax.InstRune, out: int32(in.Out), set: set})
	from := ascii
	if !exact {
		beyond := &[4]uint64{2: ^uint64(0), 3: ^uint64(0)}
		more := s.add(sieveNode{op: syntax.InstRune, set: beyond})
		again := s.add(sieveNode{op: syntax.InstAlt, out: int32(in.Out), arg: more})
		s.nodes[more].out = again
		from = s.add(sieveNode{op: syntax.InstAlt, out: ascii, arg: more})
	}
	for _, r := range wide {
		next := int32(in.Out)
		for _, b := range slices.Backward(utf8.AppendRune(nil, r)) {
			one := new([4]uint64)
			put(one, b)
			next = s.add(sieveNode{op: syntax.InstRune, out: next, set: one})
		}
		from = s.add(sieveNode{op: syntax.InstAlt, out: from, arg: next})
	}
	s.nodes[i] = sieveNode{op: syntax.InstNop, out: from}
}

func (s *sieve) add(n sieveNode) int32 {
	s.nodes = append(s.nodes, n)
	return int32(len(s.nodes) - 1)
}

func matchRune(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return in.MatchRune(r)
}

// wideRunes are the characters beyond ASCII that an instruction takes, where
// they are few; exact is false where they are not. U+FFFD is what the regexp
// takes a broken byte for.
func wideRunes(in *syntax.Inst) (wide []rune, exact bool) {
	if in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL {
		return nil, false
	}
	add := func(r rune) {
		if r >= utf8.RuneSelf {
			wide = append(wide, r)
		}
	}
	if len(in.Rune) == 1 {
		add(in.Rune[0])
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
				add(r)
			}
		}
		return wide, !slices.Contains(wide, utf8.RuneError)
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		lo, hi := max(in.Rune[i], utf8.RuneSelf), in.Rune[i+1]
		if lo > hi {
			continue
		}
		if hi-lo >= 8 || len(wide) > 16 || lo <= utf8.RuneError && utf8.RuneError <= hi {
			return nil, false
		}
		for r := lo; r <= hi; r++ {
			add(r)
		}
	}
	return wide, true
}

// classes puts bytes that no node tells apart into one class.
func (s *sieve) classes() {
	byKind := map[string]uint32{}
	for b := range 256 {
		var kind []byte
		for _, n := range s.nodes {
			if n.set != nil {
				kind = append(kind, byte(n.set[b>>6]>>(b&63)&1))
			}
		}
		switch {
		case b == '\n':
			kind = append(kind, 2)
		case b == '\r':
			kind = append(kind, 3)
		case s.words && isWordByte(byte(b)):
			kind = append(kind, 4)
		}
		c, known := byKind[string(kind)]
		if !known {
			c = uint32(len(byKind))
			byKind[string(kind)] = c
		}
		s.class[b] = c
	}
	s.nl, s.cr = s.class['\n'], s.class['\r']
	s.bareCR = uint32(len(byKind))
	s.width = s.bareCR + 1
}

func isWordByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_'
}

// What stands before the place of a state.
const (
	atStart byte = iota
	afterOther
	afterWord
)

// forget drops all states and begins again with the first.
func (s *sieve) forget() {
	// No state may have the number of a mark.
	s.next = make([]uint32, (matchState/s.width+1)*s.width)
	s.keys = make([]string, matchState/s.width+1)
	s.states = map[string]uint32{}
	s.start = s.state(atStart, []int32{s.first})
}

// state returns the state of having these nodes to try at a place.
func (s *sieve) state(before byte, nodes []int32) uint32 {
	if !s.edges {
		before = atStart
	}
	slices.Sort(nodes)
	key := make([]byte, 1, 1+4*len(nodes))
	key[0] = before
	for i, n := range nodes {
		if i == 0 || n != nodes[i-1] {
			key = binary.LittleEndian.AppendUint32(key, uint32(n))
		}
	}
	if id, known := s.states[string(key)]; known {
		return id
	}
	id := uint32(len(s.next))
	s.next = append(s.next, make([]uint32, s.width)...)
	s.keys = append(s.keys, string(key))
	s.states[string(key)] = id
	return id
}

// step works out where a state goes on a byte of a class and keeps the answer.
func (s *sieve) step(from, class uint32) uint32 {
	if len(s.states) > maxSieveStates {
		key := s.keys[from/s.width]
		s.forget()
		from = s.state(key[0], nodesOf(key))
	}
	key := s.keys[from/s.width]
	b := byte('\r')
	if class != s.bareCR {
		b = byte(slices.Index(s.class[:], class))
	}
	to := uint32(matchState)
	if !s.closure(nodesOf(key), edgesAt(key[0], b)) {
		to = s.after(b)
	}
	s.next[from+class] = to
	return to
}

func nodesOf(key string) []int32 {
	nodes := make([]int32, 0, len(key)/4+1)
	for k := key[1:]; k != ""; k = k[4:] {
		nodes = append(nodes, int32(binary.LittleEndian.Uint32([]byte(k[:4]))))
	}
	return nodes
}

// edgesAt are the assertions that hold between what was and the byte b.
func edgesAt(before, b byte) syntax.EmptyOp {
	op := syntax.EmptyNoWordBoundary
	if (before == afterWord) != isWordByte(b) {
		op = syntax.EmptyWordBoundary
	}
	if before == atStart {
		op |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if b == '\n' {
		op |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	return op
}

// closure follows all that takes no byte, puts the nodes that take one into
// live, and reports whether a match ends here.
func (s *sieve) closure(nodes []int32, edges syntax.EmptyOp) bool {
	s.round++
	s.live = s.live[:0]
	s.stack = append(s.stack[:0], nodes...)
	for len(s.stack) > 0 {
		i := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.work++
		if s.mark[i] == s.round {
			continue
		}
		s.mark[i] = s.round
		switch n := &s.nodes[i]; n.op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt:
			s.stack = append(s.stack, n.out, n.arg)
		case syntax.InstNop:
			s.stack = append(s.stack, n.out)
		case syntax.InstEmptyWidth:
			if n.need&^edges == 0 {
				s.stack = append(s.stack, n.out)
			}
		case syntax.InstRune:
			s.live = append(s.live, i)
		}
	}
	return false
}

// after is the state behind b, a byte that the live nodes are offered.
func (s *sieve) after(b byte) uint32 {
	if b == '\n' {
		return s.start
	}
	nodes := []int32{s.first} // a match may begin anywhere
	for _, i := range s.live {
		if has(s.nodes[i].set, b) {
			nodes = append(nodes, s.nodes[i].out)
		}
	}
	before := afterOther
	if s.words && isWordByte(b) {
		before = afterWord
	}
	return s.state(before, nodes)
}

// spent says that the last find gave up: the sieve is of no use for such text.
func (s *sieve) spent() bool { return s.work > maxSieveWork }

// find returns a place in the first line of text that may match, the place of
// its line end included, or -1. text begins where a line does, and what is
// behind its last line end is a line as well. Where building takes longer than
// searching it gives up, and returns a place in the line that it is in.
func (s *sieve) find(text []byte) int {
	state := s.start
	s.work = 0
	for i := 0; i < len(text); i++ {
		c := s.class[text[i]]
		to := s.next[state+c]
		if to > matchState {
			state = to
			continue
		}
		if c == s.cr {
			c = s.bareCR
			if i+1 == len(text) || text[i+1] == '\n' {
				c = s.nl
			}
			to = s.next[state+c]
		}
		if to == unknownState {
			to = s.step(state, c)
		}
		if to == matchState || s.spent() {
			return i
		}
		if c == s.nl && text[i] == '\r' {
			i++
		}
		state = to
	}
	if len(text) == 0 || text[len(text)-1] == '\n' || bytes.HasSuffix(text, []byte{'\r'}) {
		return -1
	}
	to := s.next[state+s.nl]
	if to == unknownState {
		to = s.step(state, s.nl)
	}
	if to == matchState {
		return len(text)
	}
	return -1
}
