package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is a term of a text, and where in the text it stands, in bytes.
type token struct {
	term     string
	from, to int
}

// gap stands where no phrase goes on. It is no letter, and so the term of no text.
const gap = "¶"

// maxTerm is how many characters of a word make its term: what is longer is no word.
const maxTerm = 64

// spaceless reports whether a character is of a script that puts no spaces between words.
func spaceless(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー')
}

// tokenize splits a text into terms: words of letters and digits, in lower case and in one of their forms
// (stem); of scripts
// without spaces each two neighbours, and the last character of a stretch for itself. Behind them
// stand, once more, the parts of words like camelCase. Width and composition of characters do not
// count (NFKC).
func tokenize(s string) []token {
	all, parts := split(s)
	return append(all, parts...)
}

// split is tokenize, with the parts of words apart.
func split(s string) (all, parts []token) {
	t := tokenizer{all: make([]token, 0, len(s)/5+1)}
	if ascii(s) {
		for i := range len(s) {
			t.add(rune(s[i]), i, i+1)
		}
	} else {
		var it norm.Iter
		it.InitString(norm.NFKC, s)
		for !it.Done() {
			from := it.Pos()
			segment := it.Next()
			to := it.Pos()
			if to <= from { // one character that becomes several comes in pieces
				_, size := utf8.DecodeRuneInString(s[from:])
				to = from + size
			}
			for _, r := range string(segment) {
				t.add(r, from, to)
			}
		}
	}
	t.flush()
	return t.all, t.parts
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// letter is a character of a word that is being read.
type letter struct {
	r        rune
	from, to int
}

type tokenizer struct {
	all, parts []token
	word       []letter
	wide       bool // the word is a stretch of a script without spaces
}

func (t *tokenizer) add(r rune, from, to int) {
	wide := spaceless(r)
	inWord := wide || unicode.IsLetter(r) || unicode.IsNumber(r) || len(t.word) > 0 && unicode.IsMark(r)
	if !inWord || wide != t.wide && !unicode.IsMark(r) {
		t.flush()
	}
	if inWord {
		if len(t.word) == 0 {
			t.wide = wide
		}
		t.word = append(t.word, letter{r, from, to})
	}
}

func (t *tokenizer) flush() {
	w := t.word
	t.word = t.word[:0]
	if len(w) == 0 {
		return
	}
	if !t.wide {
		t.all = append(t.all, stemOf(w))
		t.takeApart(w)
		return
	}
	for i := range w {
		t.all = append(t.all, termOf(w[i:min(i+2, len(w))]))
	}
}

// takeApart adds the parts of camelCase and HTTPServer.
func (t *tokenizer) takeApart(w []letter) {
	from := 0
	for i := 1; i <= len(w); i++ {
		if i < len(w) && (!unicode.IsUpper(w[i].r) || unicode.IsUpper(w[i-1].r) && (i+1 == len(w) || !unicode.IsLower(w[i+1].r))) {
			continue
		}
		if from == 0 && i < len(w) {
			t.parts = append(t.parts, token{gap, w[0].from, w[0].to})
		}
		if from > 0 || i < len(w) {
			t.parts = append(t.parts, stemOf(w[from:i]))
		}
		from = i
	}
}

func termOf(w []letter) token {
	var b strings.Builder
	for _, l := range w[:min(len(w), maxTerm)] {
		b.WriteRune(unicode.ToLower(l.r))
	}
	return token{b.String(), w[0].from, w[len(w)-1].to}
}

func stemOf(w []letter) token {
	t := termOf(w)
	t.term = stem(t.term)
	return t
}

// stem is a word of English without what its forms end with, roughly: "expires", "expired" and
// "expire" are one. Others come out as they are, or a little shorter, always the same.
func stem(term string) string {
	const least = 4
	for _, end := range []string{"ings", "ing", "ers", "er", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(term, end); ok && len(s) >= least {
			term = s
			break
		}
	}
	if s, ok := strings.CutSuffix(term, "e"); ok && len(s) >= least {
		return s
	}
	return term
}

// phrase are terms that follow each other; the last one may be the beginning of a longer word.
type phrase struct {
	terms  []string
	prefix bool
}

// leastPrefix is how many characters what begins a word must have.
const leastPrefix = 3

// Query is what is looked for: phrases that all are there.
type Query []phrase

// Parse reads the words that are looked for. What a word consists of, as a.b or more than one word
// in an argument, is looked for in that order. A word that ends with * is the beginning of others; of
// scripts without spaces each character counts.
func Parse(words []string) (q Query) {
	for _, w := range words {
		begins := strings.HasSuffix(w, "*")
		all, _ := split(w)
		// What a stretch ends with is found by the two before it.
		if n := len(all); n > 1 && wide(all[n-1].term) && all[n-2].to == all[n-1].to {
			all = all[:n-1]
		}
		var p phrase
		for _, t := range all {
			p.terms = append(p.terms, t.term)
		}
		if len(p.terms) == 0 {
			continue
		}
		last := p.terms[len(p.terms)-1]
		n := utf8.RuneCountInString(last)
		p.prefix = n == 1 && wide(last) || begins && n >= leastPrefix && !wide(last)
		q = append(q, p)
	}
	return q
}

// wide reports whether a term is of a script without spaces.
func wide(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return spaceless(r)
}

// expression is the query as FTS5 reads it; words gives those that begin with a term. Terms hold
// letters and digits alone.
func (q Query) expression(words func(beginning string) ([]string, error)) (string, error) {
	all := make([]string, len(q))
	for i, p := range q {
		last := len(p.terms) - 1
		ends := p.terms[last:]
		if p.prefix {
			var err error
			if ends, err = words(p.terms[last]); err != nil {
				return "", err
			}
		}
		if len(ends) == 0 { // no word begins so
			ends = p.terms[last:]
		}
		before := strings.Join(p.terms[:last], " ") + " "
		var forms []string
		for _, end := range ends {
			forms = append(forms, `"`+strings.TrimSpace(before+end)+`"`)
		}
		all[i] = "(" + strings.Join(forms, " OR ") + ")"
	}
	return strings.Join(all, " AND "), nil
}

// at reports whether a phrase stands at the beginning of tokens.
func (p phrase) at(tokens []token) bool {
	if len(tokens) < len(p.terms) {
		return false
	}
	for i, term := range p.terms {
		if have := tokens[i].term; have != term && (!p.prefix || i < len(p.terms)-1 || !strings.HasPrefix(have, term)) {
			return false
		}
	}
	return true
}

// may reports whether a phrase may stand in a text: its terms are parts of it. plain is the text in
// lower case.
func (p phrase) may(plain string) bool {
	return !slices.ContainsFunc(p.terms, func(t string) bool { return !strings.Contains(plain, t) })
}

// find returns which phrases stand in a text, a bit each, and where: [from, to) in bytes, in order,
// apart from each other.
func (q Query) find(text string) (found uint64, at [][2]int) {
	if norm.NFKC.IsNormalString(text) { // most texts are, and most hold none
		plain := strings.ToLower(text)
		if !slices.ContainsFunc(q, func(p phrase) bool { return p.may(plain) }) {
			return 0, nil
		}
	}
	tokens := tokenize(text)
	for i := range tokens {
		for n, p := range q {
			if p.at(tokens[i:]) {
				found |= 1 << min(n, 63)
				at = append(at, [2]int{tokens[i].from, tokens[i+len(p.terms)-1].to})
			}
		}
	}
	return found, apart(at)
}

// all are the bits of every phrase.
func (q Query) all() uint64 { return 1<<min(len(q), 64) - 1 }
