package delivery

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
)

// Message is what a model says of its work at the end, as a commit message has it.
type Message struct {
	Subject string // one line of at most maxSubject characters; "" where it gave none
	Body    string // Markdown
}

// maxSubject is how long the first line of a commit may be, in characters: some more than
// the 72 that the model is asked for. wrapAt is where its other lines are wrapped, in
// columns (git-commit(1)).
const (
	maxSubject = planning.MaxSubject
	minSubject = 10 // of one that stands alone: "Done" is none
	wrapAt     = 72
)

// ParseMessage reads one from a last answer: a subject, an empty line and a body, in a
// block of code or not, or a line that is no sentence as a subject alone. An answer of another shape is body alone; JSON is no words
// for people.
func ParseMessage(said string) Message {
	said = strings.TrimSpace(strings.ReplaceAll(said, "\r\n", "\n"))
	if m := fencedWhole().FindStringSubmatch(said); m != nil && !strings.Contains(m[1], "\n```") {
		said = strings.TrimSpace(m[1])
	} else if m := fencedSubject().FindStringSubmatch(said); m != nil {
		said = m[1] + "\n" + said[len(m[0]):]
	}
	if (strings.HasPrefix(said, "{") || strings.HasPrefix(said, "[")) && json.Valid([]byte(said)) {
		return Message{}
	}
	head, rest, _ := strings.Cut(said, "\n")
	next, _, _ := strings.Cut(rest, "\n")
	subject := strings.TrimRight(strings.Trim(decorated().ReplaceAllString(strings.TrimSpace(head), ""), "*_ "), ".。 ")
	body := strings.TrimSpace(rest)
	if n := utf8.RuneCountInString(head); body == "" && n >= minSubject && n <= maxSubject && !strings.ContainsAny(head[len(head)-1:], ".!?:") && !strings.HasSuffix(head, "。") {
		return Message{Subject: subject}
	}
	if body == "" || strings.TrimSpace(next) != "" || subject == "" || utf8.RuneCountInString(subject) > maxSubject || strings.HasSuffix(subject, ":") {
		return Message{Body: said}
	}
	return Message{Subject: subject, Body: strings.TrimSpace(strings.TrimPrefix(body, head))}
}

var (
	fencedWhole = lazyregexp.New("(?s)^```[a-z]*\n(.*)\n```$")
	// fencedSubject is a subject in a block of code of its own, before the body.
	fencedSubject = lazyregexp.New("^```(?:text|markdown)?\n([^\n]+)\n```\n")
	// decorated is what stands before a subject and is none of it.
	decorated = lazyregexp.New(`^(?:#+[ \t]+|[*_]{2}|(?i:(?:commit message|subject|title|件名)[ \t]*[:：][ \t]*))+`)
)

// wrapped is a text with no line wider than wrapAt where that can be: what is
// indented by four columns, a table or a block of code stays as it is. What is left
// of a line that was wider goes on in the next line of its paragraph.
func wrapped(text string) string {
	var all []string
	code, wider := false, false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if code = code != fence; code || fence || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") {
			all, wider = append(all, line), false
			continue
		}
		if wider && goesOn().MatchString(line) && !bullet().MatchString(line) {
			left := all[len(all)-1]
			if last, _ := utf8.DecodeLastRuneInString(left); progress.Width(string(last)) == 1 {
				left += " "
			}
			all, line = all[:len(all)-1], left+strings.TrimSpace(line)
		}
		lines := wrapLine(line)
		all, wider = append(all, lines...), len(lines) > 1
	}
	return strings.Join(all, "\n")
}

// goesOn is a line that may belong to the paragraph of the one before it.
var goesOn = lazyregexp.New(`^ {0,3}[^\s#>]`)

var bullet = lazyregexp.New(`^[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]+`)

// wrapLine is a line in several, each after the first as far in as its text begins.
// Characters that are two columns wide may stand apart, as Japanese is written.
func wrapLine(line string) (all []string) {
	in := strings.Repeat(" ", progress.Width(bullet().FindString(line)))
	for progress.Width(line) > wrapAt {
		at, columns, before := 0, 0, 0 // where the line may end
		for i, r := range line {
			w := progress.Width(string(r))
			if columns += w; columns > wrapAt && at > 0 {
				break
			}
			switch {
			case r == ' ' && i > len(in):
				at = i
			case max(w, before) == 2 && i > len(in) && !strings.ContainsRune("、。，．）」』】!?！？", r) && columns <= wrapAt:
				at = i
			}
			before = w
		}
		if at == 0 {
			break
		}
		all = append(all, strings.TrimRight(line[:at], " "))
		line = in + strings.TrimLeft(line[at:], " ")
	}
	return append(all, line)
}
