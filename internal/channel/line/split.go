package line

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"toritsugi/internal/channel"
)

// split cuts a text into parts of at most limit units: at the end of a paragraph where it
// can, else of a line, else of a word, else between two characters. A block of code is left
// whole where it fits into a part; else it is closed, and opened again in the next one.
func split(text string, limit int) (parts []string) {
	text = strings.Trim(text, "\n")
	for channel.Units(text) > limit {
		n, open := cut(text, limit)
		part, rest := text[:n], text[n:]
		if open == "" {
			part, rest = strings.TrimRight(part, " \n"), strings.TrimLeft(rest, "\n")
		} else {
			part, rest = strings.TrimRight(part, "\n")+"\n"+open, open+"\n"+strings.TrimPrefix(rest, "\n")
		}
		if strings.TrimSpace(part) != "" {
			parts = append(parts, part)
		}
		text = rest
	}
	if strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	return parts
}

// cut is where a text that is too long is cut, and the mark of the block of code that is cut
// through, "" for none.
func cut(text string, limit int) (n int, open string) {
	var paragraph, line, within, block int // where cuts are good, in bytes; where the block began
	size, room := 0, limit
	for at := 0; at < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		l := strings.TrimSuffix(text[at:next], "\n")
		u := channel.Units(l)
		if size+u > limit {
			break
		}
		size += u + 1
		was := open
		switch mark := fence(l); {
		case open != "" && closes(l, open):
			open = ""
		case open == "" && mark != "":
			open, block, within = mark, at, next
			room = limit - len(mark) - 1
		}
		switch {
		case open != "" && was != "" && size-1 <= room:
			within = next
		case open == "" && (was != "" || strings.TrimSpace(l) == ""):
			paragraph, line = next, next
		case open == "":
			line = next
		}
		at = next
	}
	switch {
	case open != "" && block > 0 && channel.Units(fenced(text[block:], open)) <= limit:
		return block, ""
	case open != "" && within > firstLine(text, block):
		return within, open
	case open != "" && block > 0:
		return block, ""
	case open != "":
		return hard(text, room, firstLine(text, 0)), open
	case channel.Units(text[:paragraph])*3 >= limit:
		return paragraph, ""
	case line > 0:
		return line, ""
	}
	return hard(text, limit, 0), ""
}

// firstLine is where the line at begins ends, in bytes.
func firstLine(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// fenced is the block of code with which a text begins.
func fenced(text, mark string) string {
	for at := firstLine(text, 0); at < len(text); {
		next := firstLine(text, at)
		if closes(text[at:next], mark) {
			return strings.TrimSuffix(text[:next], "\n")
		}
		at = next
	}
	return text
}

// hard is where a text is cut whose line is too long for a part: at a space in the second
// half of limit, else between two characters, and in any case behind least.
func hard(text string, limit, least int) int {
	n, space, size := 0, 0, 0
	for g := graphemes.FromString(text); g.Next(); {
		u := channel.Units(g.Value())
		if size+u > limit {
			break
		}
		size += u
		n += len(g.Value())
		if g.Value() == " " && size*2 >= limit {
			space = n
		}
	}
	switch {
	case n == len(text):
		return n
	case space > least:
		return space
	case n > least:
		return n
	}
	n, size = 0, 0
	for _, r := range text { // the next character has more signs than a part holds
		if size += channel.Units(string(r)); size > limit {
			break
		}
		n += utf8.RuneLen(r)
	}
	return n
}
