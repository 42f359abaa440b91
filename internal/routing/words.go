package routing

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Of a longer message only its beginning and its end are looked at, in bytes: what is
// asked for stands there, and what is pasted shows in it what it is.
const (
	maxHead = 64 << 10
	maxTail = 16 << 10
)

// message is a text as rules look at it.
type message struct {
	raw    string // as it was written
	cut    bool   // raw lacks its middle
	plain  string // NFKC
	folded string // plain in lower case
}

func newMessage(text string) *message {
	m := &message{raw: text}
	if len(text) > maxHead+maxTail {
		head, tail := text[:maxHead], text[len(text)-maxTail:]
		if i := strings.LastIndexByte(head, '\n'); i > maxHead/2 {
			head = head[:i]
		}
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i < maxTail/2 {
			tail = tail[i+1:]
		}
		m.raw, m.cut = strings.ToValidUTF8(head, "")+"\n"+strings.ToValidUTF8(tail, ""), true
	}
	m.plain = norm.NFKC.String(m.raw)
	m.folded = strings.ToLower(m.plain)
	return m
}

// span is a piece of message.folded; end 0 is none.
type span struct{ start, end int }

// piece is what stands at a span, as it was written as far as that can be told.
func (m *message) piece(s span) string {
	if len(m.plain) == len(m.folded) {
		return m.plain[s.start:s.end]
	}
	return m.folded[s.start:s.end]
}

// fold is how words are compared: NFKC, lower case.
func fold(s string) string { return strings.ToLower(norm.NFKC.String(s)) }

// matcher finds words in one pass over a text.
type matcher struct {
	ascii [utf8.RuneSelf][]word // by first byte
	other map[rune][]word       // by first rune
	sets  int
}

// word is one word of a set.
type word struct {
	text   string
	set    int
	except []exception
}

// exception is a longer word of which a word is no more than a part.
type exception struct {
	text string
	at   int // where the word stands in it
}

// add adds a set of words, none of which counts as a part of one of except. It returns
// the number of the set.
func (m *matcher) add(words, except []string) int {
	m.sets++
	m.extend(m.sets-1, words, except)
	return m.sets - 1
}

// extend adds further words to a set.
func (m *matcher) extend(set int, words, except []string) {
	if m.other == nil {
		m.other = map[rune][]word{}
	}
	longer := make([]string, len(except))
	for i, e := range except {
		longer[i] = fold(e)
	}
	for _, w := range words {
		w := word{text: fold(w), set: set}
		for _, e := range longer {
			for at := 0; ; at++ {
				i := strings.Index(e[at:], w.text)
				if i < 0 {
					break
				}
				at += i
				w.except = append(w.except, exception{e, at})
			}
		}
		if c := w.text[0]; c < utf8.RuneSelf {
			m.ascii[c] = append(m.ascii[c], w)
			continue
		}
		r, _ := utf8.DecodeRuneInString(w.text)
		m.other[r] = append(m.other[r], w)
	}
}

// find returns for each set where the first of its words stands in a folded text.
func (m *matcher) find(folded string) []span {
	found := make([]span, m.sets)
	before := rune(0)
	for i := 0; i < len(folded); {
		var words []word
		r, n := rune(folded[i]), 1
		if r < utf8.RuneSelf {
			words = m.ascii[r]
		} else {
			r, n = utf8.DecodeRuneInString(folded[i:])
			words = m.other[r]
		}
		for _, w := range words {
			if found[w.set].end == 0 && strings.HasPrefix(folded[i:], w.text) && w.stands(folded, i, before) {
				found[w.set] = span{i, i + len(w.text)}
			}
		}
		before, i = r, i+n
	}
	return found
}

// stands reports whether w, which text has at i, is a word there: where it begins or ends
// with a Latin letter or a digit, none stands beside it.
func (w *word) stands(text string, i int, before rune) bool {
	first, _ := utf8.DecodeRuneInString(w.text)
	last, _ := utf8.DecodeLastRuneInString(w.text)
	after, _ := utf8.DecodeRuneInString(text[i+len(w.text):])
	if latin(first) && latin(before) || latin(last) && latin(after) {
		return false
	}
	return !slices.ContainsFunc(w.except, func(e exception) bool { return i >= e.at && strings.HasPrefix(text[i-e.at:], e.text) })
}

func latin(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r == '_'
	}
	return unicode.Is(unicode.Latin, r)
}
