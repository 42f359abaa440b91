package terminal

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/channel"
)

// choice is what may be completed: text takes the place of the word at the cursor.
type choice struct {
	text, help string
	whole      bool // nothing need follow it
}

// menu is what may be completed where the cursor is.
type menu struct {
	from    int // where the word begins
	choices []choice
	at      int
	shut    string // the text for which it was closed
}

// maxChoices is how many a menu holds.
const maxChoices = 50

// look finds what the word at the cursor may become.
func (m *menu) look(e *editor, commands []channel.Command, files []string) {
	shut, was := m.shut, menu{from: m.from, choices: m.choices, at: m.at}
	*m = menu{shut: shut}
	if e.text == shut && shut != "" {
		return
	}
	m.shut = ""
	word := e.text[:e.at]
	if i := strings.LastIndexFunc(word, unicode.IsSpace); i >= 0 {
		_, size := utf8.DecodeRuneInString(word[i:])
		m.from = i + size
	}
	word = word[m.from:]
	switch {
	case strings.HasPrefix(word, "/") && strings.TrimSpace(e.text[:m.from]) == "":
		for _, c := range commands {
			if strings.HasPrefix(c.Name, strings.ToLower(word)) {
				m.choices = append(m.choices, choice{c.Name, strings.TrimSpace(c.Args + "  " + c.Help), c.Args == ""})
			}
		}
	case strings.HasPrefix(word, "@"):
		for _, f := range likely(files, strings.Trim(word[1:], `"`)) {
			m.choices = append(m.choices, choice{text: "@" + quoted(f)})
		}
	}
	if len(m.choices) == 1 && m.choices[0].text == word {
		m.choices = nil
	}
	if was.from == m.from && was.at < len(m.choices) && slices.Equal(was.choices, m.choices) {
		m.at = was.at
	}
}

func (m *menu) move(by int) { m.at = (m.at + by + len(m.choices)) % len(m.choices) }

// take completes the word, and reports whether that changed it.
func (m *menu) take(e *editor) bool {
	c := m.choices[m.at].text
	changed := e.text[m.from:e.at] != c
	if e.at == len(e.text) && !m.choices[m.at].whole {
		c += " "
	}
	e.replace(m.from, c)
	m.choices = nil
	return changed
}

// quoted is a path as a mention holds it.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t　") {
		return `"` + path + `"`
	}
	return path
}

// likely are the files that a few letters may mean, the likeliest first: whose name
// begins with them, holds them, whose path holds them, or has them in their order.
func likely(files []string, word string) []string {
	type ranked struct {
		path string
		rank int
	}
	word = strings.ToLower(word)
	var all []ranked
	for _, f := range files {
		low := strings.ToLower(f)
		name := low[strings.LastIndexByte(low, '/')+1:]
		switch {
		case strings.HasPrefix(low, word) && strings.Contains(word, "/"), strings.HasPrefix(name, word):
			all = append(all, ranked{f, 0})
		case strings.Contains(name, word):
			all = append(all, ranked{f, 1})
		case strings.Contains(low, word):
			all = append(all, ranked{f, 2})
		case inOrder(low, word):
			all = append(all, ranked{f, 3})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	var out []string
	for _, r := range all[:min(len(all), maxChoices)] {
		out = append(out, r.path)
	}
	return out
}

func inOrder(s, letters string) bool {
	for _, r := range letters {
		i := strings.IndexRune(s, r)
		if i < 0 {
			return false
		}
		s = s[i+1:]
	}
	return true
}
