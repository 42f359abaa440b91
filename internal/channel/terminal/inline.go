package terminal

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/channel"
)

// maxSpan is how far away the end of emphasis and of a link is looked for, in bytes.
const maxSpan = 2000

// maxEntity is how long an entity is at most, in bytes.
const maxEntity = 12

// inline is the text of a block: emphasis, code, links. Unlike CommonMark, which takes
// Japanese brackets at the edge of **emphasis** for a reason to show the asterisks, it
// asks only for no blank within the edge.
func inline(s string, how style) (l line) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			l = append(l, span{how, text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		var part line
		n := 0
		switch s[i] {
		case '\\':
			if i+1 < len(s) && s[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(s[i+1])) || strings.HasPrefix(s[i:], "\\`") || strings.HasPrefix(s[i:], `\|`) {
				text.WriteByte(s[i+1])
				i += 2
				continue
			}
		case '`':
			part, n = codeSpan(s[i:], how)
		case '*', '_':
			part, n = emphasis(s, i, how)
		case '[', '!', '<':
			part, n = link(s[i:], how)
		case '&':
			if end := strings.IndexAny(s[i:min(len(s), i+maxEntity)], "; \n"); end > 0 && s[i+end] == ';' {
				text.WriteString(channel.Clean(html.UnescapeString(s[i : i+end+1]))) // what it stands for may steer
				i += end + 1
				continue
			}
		}
		if n == 0 {
			text.WriteByte(s[i])
			i++
			continue
		}
		flush()
		l = append(l, part...)
		i += n
	}
	flush()
	return l
}

// runOf is how many times a text begins with its first byte.
func runOf(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

func codeSpan(s string, how style) (line, int) {
	n := runOf(s)
	for i := n; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		m := runOf(s[i:])
		if m == n {
			code := strings.ReplaceAll(s[n:i], "\n", " ")
			if len(code) > 2 && code[0] == ' ' && code[len(code)-1] == ' ' {
				code = code[1 : len(code)-1]
			}
			return line{{how | green, code}}, i + n
		}
		i += m
	}
	return line{{how, s[:n]}}, n
}

// emphasis reads what *, ** or *** at i encloses; its length is 0 where it encloses
// nothing.
func emphasis(s string, i int, how style) (line, int) {
	n, c := runOf(s[i:]), s[i]
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+n:])
	if n > 3 || i+n == len(s) || unicode.IsSpace(after) || c == '_' && wordy(before) {
		return line{{how, s[i : i+n]}}, n
	}
	start := i + n
	for j := start; j < min(len(s), start+maxSpan); {
		switch s[j] {
		case '\\':
			j += 2
			continue
		case '`':
			_, m := codeSpan(s[j:], 0)
			j += m
			continue
		case c:
		default:
			j++
			continue
		}
		m := runOf(s[j:])
		last, _ := utf8.DecodeLastRuneInString(s[:j])
		next, _ := utf8.DecodeRuneInString(s[j+m:])
		if (m == n || m > n && n > 1 || m == 3 && n == 1) && !unicode.IsSpace(last) && (c == '*' || !wordy(next)) {
			kind := [...]style{italic, bold, bold | italic}[n-1]
			return inline(s[start:j+m-n], how|kind), j + m - i
		}
		j += m
	}
	return line{{how, s[i:start]}}, n
}

// link reads [text](address), ![text](address) and <address>.
func link(s string, how style) (line, int) {
	if s[0] == '<' {
		end := strings.IndexAny(s[:min(len(s), maxSpan)], "> \n")
		if end > 0 && s[end] == '>' && (strings.Contains(s[:end], "://") || strings.Contains(s[:end], "@")) {
			return line{{how | underline, s[1:end]}}, end + 1
		}
		return nil, 0
	}
	from := strings.IndexByte(s[:min(len(s), 2)], '[') + 1
	if from == 0 {
		return nil, 0
	}
	deep, mid := 1, from
	for ; mid < min(len(s), maxSpan); mid++ {
		if s[mid] == '[' {
			deep++
		} else if s[mid] == ']' {
			if deep--; deep == 0 {
				break
			}
		}
	}
	if mid+1 >= len(s) || s[mid] != ']' || s[mid+1] != '(' {
		return nil, 0
	}
	deep, end := 1, mid+2
	for ; end < min(len(s), mid+maxSpan); end++ {
		if s[end] == '(' {
			deep++
		} else if s[end] == ')' {
			if deep--; deep == 0 {
				break
			}
		}
	}
	if end >= len(s) || s[end] != ')' {
		return nil, 0
	}
	to, _, _ := strings.Cut(strings.Trim(s[mid+2:end], "<>"), " ")
	l := inline(s[from:mid], how|underline)
	said := ""
	for _, part := range l {
		said += part.text
	}
	if said != to && to != "" { // a reader sees where it leads before he opens it
		l = append(l, span{how | faint, " (" + to + ")"})
	}
	return l, end + 1
}
