package broker

import (
	"strings"

	"toritsugi/internal/redact"
)

// CollapsedList is the part of a comment that stays closed until a reader opens it. Its
// tags are written here, around what was cleaned line by line: no text of others
// can open, close or fill one.
type CollapsedList struct {
	Title string   // is seen where it is closed
	Lines []string // items of a list; a line break in one is a blank
	// Dropped says that the first n lines were left out for want of room, "" where
	// nothing is to be said of that; nil never says anything.
	Dropped func(n int) string
}

// The tags of a collapsed list. The empty lines are what makes Markdown of what stands
// between them, and of what follows (CommonMark 0.31 §4.6).
const (
	collapsedOpen   = "<details>\n<summary>"
	collapsedOpened = "</summary>\n\n"
	collapsedClose  = "\n</details>\n\n"
)

// Collapse returns a collapsed list as it may go out in Markdown, at most most bytes long; of
// what does not fit the first lines go. It is "" where not one line fits, and where
// its lines together hold a secret.
func (f *Filter) Collapse(x CollapsedList, most int) (string, []Finding, error) {
	title, found, err := f.line(x.Title)
	title = noTags.Replace(title) // no Markdown is read where it stands
	if err != nil {
		return "", found, err
	}
	room := most - len(collapsedOpen) - len(title) - len(collapsedOpened) - len(collapsedClose)
	dropped := func(n int) (string, error) {
		if x.Dropped == nil {
			return "", nil
		}
		text, _, err := f.line(x.Dropped(n))
		if text == "" {
			return "", err
		}
		return "- " + text + "\n", err
	}
	longest, err := dropped(len(x.Lines))
	if err != nil {
		return "", found, err
	}
	room -= len(longest)
	var lines []string // last one first
	for i := len(x.Lines) - 1; i >= 0; i-- {
		line, more, err := f.line(x.Lines[i])
		if found = append(found, more[:min(len(more), maxFindings-min(len(found), maxFindings))]...); err != nil {
			return "", found, err
		}
		if room -= len("- \n") + len(line); room < 0 {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "", found, nil
	}
	said, err := dropped(len(x.Lines) - len(lines))
	if err != nil {
		return "", found, err
	}
	var b strings.Builder
	b.WriteString(collapsedOpen + title + collapsedOpened + said)
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString("- " + lines[i] + "\n")
	}
	b.WriteString(collapsedClose)
	if whole := b.String(); !f.holdsSecret(whole) {
		return whole, found, nil
	}
	return "", append(found, Finding{FoundSecret, redact.Redacted, "line 1"}), nil
}

var noTags = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// noFences takes the power from what would begin a block of code in a line.
var noFences = strings.NewReplacer("```", "'''", "~~~", "˜˜˜")

// line cleans a text that is to stay on one line of Markdown.
func (f *Filter) line(s string) (string, []Finding, error) {
	clean, found, err := f.Clean(Markdown, noFences.Replace(strings.Join(strings.Fields(s), " ")))
	return strings.Join(strings.Fields(clean), " "), found, err
}
