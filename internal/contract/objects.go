package contract

import (
	"slices"
	"strings"
)

// maxObjects is how many objects of an answer are tried.
const maxObjects = 8

// Objects are the texts in an answer that may be the JSON that was asked for, the likeliest
// first: the whole, fenced blocks, those marked as JSON before others, then what stands between
// brackets that match. One that was cut off comes last.
func Objects(text string) []string {
	text = strings.TrimSpace(text)
	var marked, fenced []string
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "```")
		if !ok {
			break
		}
		info, body, _ := strings.Cut(after, "\n")
		block, next, closed := strings.Cut(body, "```")
		if block = strings.TrimSpace(block); strings.HasPrefix(block, "{") {
			if strings.EqualFold(strings.TrimSpace(info), "json") {
				marked = append(marked, block)
			} else {
				fenced = append(fenced, block)
			}
		}
		if !closed {
			break
		}
		rest = next
	}
	var all []string
	if strings.HasPrefix(text, "{") {
		all = append(all, text)
	}
	all = append(append(all, marked...), fenced...)
	all = append(all, balanced(text)...)
	if i := strings.IndexByte(text, '{'); i > 0 {
		all = append(all, text[i:])
	}
	var once []string
	for _, a := range all {
		if !slices.Contains(once, a) && len(once) < maxObjects {
			once = append(once, a)
		}
	}
	return once
}

// balanced are the outermost objects of a text; brackets within strings do not count.
func balanced(text string) (all []string) {
	depth, start, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '{':
			if depth == 0 {
				start = i
			}
			depth++
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				all = append(all, text[start:i+1])
			}
		}
	}
	return all
}
