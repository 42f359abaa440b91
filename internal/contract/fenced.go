package contract

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

// diffHead is where the changes of a file begin in a unified diff.
var diffHead = lazyregexp.New(`(?m)^--- \S.*\n\+\+\+ \S.*\n@@ -`)

// Fenced is the unified diff that a text gives in fences, joined where there are several, and
// what else it says. diff is "" where no fence that is closed has one with the heads of its files.
func Fenced(text string) (diff, rest string) {
	const thoughts = "</think>" // which are no answer
	if i := strings.LastIndex(text, thoughts); i >= 0 {
		text = text[i+len(thoughts):]
	}
	var changes, said strings.Builder
	at, kept, opened, body := 0, 0, -1, 0
	for line := range strings.Lines(text) {
		begin := at
		at += len(line)
		switch {
		case !strings.HasPrefix(line, "```"):
			continue
		case opened < 0:
			opened, body = begin, at
			continue
		case diffHead().MatchString(text[body:begin]):
			changes.WriteString(text[body:begin])
			said.WriteString(text[kept:opened])
			kept = at
		}
		opened = -1
	}
	return changes.String(), strings.TrimSpace(said.String() + text[kept:])
}
