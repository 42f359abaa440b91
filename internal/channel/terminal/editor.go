package terminal

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// editor is the text that a person writes, of one line or more.
type editor struct {
	text string
	at   int    // where the cursor is, in bytes
	cut  string // what was last cut away, for yank
}

func (e *editor) set(text string) { e.text, e.at = text, len(text) }

func (e *editor) insert(s string) {
	e.text = e.text[:e.at] + s + e.text[e.at:]
	e.at += len(s)
}

// replace puts s in the place of what lies between from and the cursor.
func (e *editor) replace(from int, s string) {
	e.text = e.text[:from] + s + e.text[e.at:]
	e.at = from + len(s)
}

// start and end are those of the line that the cursor is in.
func (e *editor) start() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *editor) end() int {
	if n := strings.IndexByte(e.text[e.at:], '\n'); n >= 0 {
		return e.at + n
	}
	return len(e.text)
}

// before and after are where the characters beside the cursor begin and end.
func (e *editor) before() int {
	if e.at > 0 && e.text[e.at-1] == '\n' {
		return e.at - 1
	}
	start := e.start()
	last := start
	for g := graphemes.FromString(e.text[start:e.at]); g.Next(); {
		last = start + g.Start()
	}
	return last
}

func (e *editor) after() int {
	if g := graphemes.FromString(e.text[e.at:]); g.Next() {
		return e.at + len(g.Value())
	}
	return e.at
}

func wordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '_'
}

// wordBefore and wordAfter are where the words beside the cursor begin and end.
func (e *editor) wordBefore() int {
	s := strings.TrimRightFunc(e.text[:e.at], func(r rune) bool { return !wordy(r) })
	return len(strings.TrimRightFunc(s, wordy))
}

func (e *editor) wordAfter() int {
	s := strings.TrimLeftFunc(e.text[e.at:], func(r rune) bool { return !wordy(r) })
	return len(e.text) - len(strings.TrimLeftFunc(s, wordy))
}

// kill cuts what lies between two places, so that yank brings it back.
func (e *editor) kill(from, to int) {
	if from < to {
		e.cut = e.text[from:to]
	}
	e.drop(from, to)
}

func (e *editor) drop(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.at = from
}

// edit does what a key is for, and reports whether it is for anything.
func (e *editor) edit(key string) bool {
	switch key {
	case "left", "ctrl+b":
		e.at = e.before()
	case "right", "ctrl+f":
		e.at = e.after()
	case "home", "ctrl+a":
		e.at = e.start()
	case "end", "ctrl+e":
		e.at = e.end()
	case "alt+left", "ctrl+left", "alt+b":
		e.at = e.wordBefore()
	case "alt+right", "ctrl+right", "alt+f":
		e.at = e.wordAfter()
	case "ctrl+home", "alt+<":
		e.at = 0
	case "ctrl+end", "alt+>":
		e.at = len(e.text)
	case "backspace", "ctrl+h":
		e.drop(e.before(), e.at)
	case "delete":
		e.drop(e.at, e.after())
	case "ctrl+w", "alt+backspace":
		e.kill(e.wordBefore(), e.at)
	case "alt+d", "ctrl+delete":
		e.kill(e.at, e.wordAfter())
	case "ctrl+u":
		e.kill(e.start(), e.at)
	case "ctrl+k":
		e.kill(e.at, e.end())
	case "ctrl+y":
		e.insert(e.cut)
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insert("\n")
	default:
		return false
	}
	return true
}

// vertical moves the cursor a row up (-1) or down (1) as laid out in width columns,
// and reports whether there is one.
func (e *editor) vertical(by, width int) bool {
	rows, y, x := e.layout(width)
	if y+by < 0 || y+by >= len(rows) {
		return false
	}
	r := rows[y+by]
	e.at = r.from
	for g, used := graphemes.FromString(e.text[r.from:r.to]), 0; g.Next(); {
		if used += ansi.StringWidth(g.Value()); used > x {
			break
		}
		e.at = r.from + g.End()
	}
	return true
}

// stretch is a row of the editor: bytes of its text.
type stretch struct{ from, to int }

// layout lays the text out in rows of at most width columns, and says in which of
// them the cursor is, and in which column.
func (e *editor) layout(width int) (rows []stretch, y, x int) {
	from, used := 0, 0
	here := func(at int) {
		if at <= e.at {
			y, x = len(rows), used
		}
	}
	for g := graphemes.FromString(e.text); g.Next(); {
		c, at := g.Value(), g.Start()
		w := ansi.StringWidth(c)
		if c != "\n" && used+w > width {
			rows = append(rows, stretch{from, at})
			from, used = at, 0
		}
		here(at)
		if used += w; c == "\n" {
			rows = append(rows, stretch{from, at})
			from, used = at+1, 0
		}
	}
	if used >= width { // the cursor needs a column of its own
		rows = append(rows, stretch{from, len(e.text)})
		from, used = len(e.text), 0
	}
	here(len(e.text))
	return append(rows, stretch{from, len(e.text)}), y, x
}
