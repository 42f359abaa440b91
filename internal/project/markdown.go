package project

import "strings"

// fence is an open block of fenced code (CommonMark §4.5).
type fence struct {
	mark  byte
	width int
	info  string // what stands behind its opening
	first bool   // the line is the opening itself
}

// eachLine calls f with each line of a Markdown text, and the fenced code that
// it is in; nil outside, and for a closing line.
func eachLine(text string, f func(line string, in *fence)) {
	var open *fence
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		mark, width, rest := fenceOf(line)
		switch {
		case open == nil && width >= 3 && (mark == '~' || !strings.Contains(rest, "`")):
			open = &fence{mark, width, strings.TrimSpace(rest), true}
			f(line, open)
			open.first = false
		case open != nil && mark == open.mark && width >= open.width && strings.TrimSpace(rest) == "":
			open = nil
			f(line, nil)
		default:
			f(line, open)
		}
	}
}

// fenceOf reads the marks that a line begins with.
func fenceOf(line string) (mark byte, width int, rest string) {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || s == "" || s[0] != '`' && s[0] != '~' {
		return 0, 0, line
	}
	rest = strings.TrimLeft(s, s[:1])
	return s[0], len(s) - len(rest), rest
}

// checksInfo is the info string of a fenced block that names a project's checks,
// one command a line; empty lines and those that begin with # say nothing.
const checksInfo = "tori-checks"

// Bounds of such a block.
const (
	maxNamed   = 20
	maxCommand = 1000 // bytes
)

// namedChecks are the commands of the first closed block of a text that names
// any. problem says what is wrong with it, "" for nothing.
func namedChecks(text string) (commands []string, problem string) {
	if !strings.Contains(text, checksInfo) {
		return nil, ""
	}
	var found []string
	inside, done := false, false
	eachLine(text, func(line string, in *fence) {
		switch {
		case done:
		case in == nil && inside:
			inside, done = false, true
		case in == nil || in.info != checksInfo:
		case in.first:
			inside = true
		default:
			if c := strings.TrimSpace(line); c != "" && !strings.HasPrefix(c, "#") {
				found = append(found, c)
			}
		}
	})
	switch {
	case inside:
		return nil, "its block " + checksInfo + " is not closed"
	case len(found) > maxNamed:
		return nil, "its block " + checksInfo + " names more than 20 commands"
	}
	for _, c := range found {
		if len(c) > maxCommand || strings.ContainsFunc(c, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, "its block " + checksInfo + " holds a command that is too long or not one line of text"
		}
	}
	return found, ""
}
