package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"toritsugi/internal/progress"
)

// change is what a pull request changes, as a reviewer is shown it.
type change []changedFile

type changedFile struct {
	path, was      string // new name and old one, the same where it kept it
	state          string // added, deleted, renamed or changed
	added, removed int
	binary         bool
	lines          map[int]changedLine // of the new side, that the patch shows
	text           string              // the hunks, with those numbers
}

// changedLine is a line that a remark may stand on.
type changedLine struct {
	text string
	old  int // its number on the old side, 0 for one that was added
}

// readChange reads a patch of git.
func readChange(patch string) (change, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, fmt.Errorf("read the change: %w", err)
	}
	var all change
	for _, f := range files {
		c := changedFile{path: cmp.Or(f.NewName, f.OldName), was: cmp.Or(f.OldName, f.NewName), state: "changed", lines: map[int]changedLine{}}
		switch {
		case f.IsNew:
			c.state = "added"
		case f.IsDelete:
			c.state = "deleted"
		case f.IsRename:
			c.state = "renamed from " + progress.OneLine(f.OldName)
		}
		var b strings.Builder
		for n, hunk := range f.TextFragments {
			if n > 0 {
				b.WriteString("   ...\n")
			}
			c.hunk(&b, hunk)
		}
		if c.text = b.String(); c.binary {
			c.lines, c.text = nil, ""
		}
		all = append(all, c)
	}
	return all, nil
}

// hunk writes the lines of a hunk, those of the new side with their numbers.
func (c *changedFile) hunk(to *strings.Builder, hunk *gitdiff.TextFragment) {
	number, old := int(hunk.NewPosition), int(hunk.OldPosition)
	for _, l := range hunk.Lines {
		text := strings.TrimRight(l.Line, "\r\n")
		c.binary = c.binary || strings.ContainsRune(text, 0) || !utf8.ValidString(text)
		switch l.Op {
		case gitdiff.OpDelete:
			fmt.Fprintf(to, "      - %s\n", text)
			c.removed++
			old++
			continue
		case gitdiff.OpAdd:
			fmt.Fprintf(to, "%5d + %s\n", number, text)
			c.lines[number] = changedLine{text: text}
			c.added++
		default:
			fmt.Fprintf(to, "%5d   %s\n", number, text)
			c.lines[number] = changedLine{text, old}
			old++
		}
		number++
	}
}

// head is a file in a line.
func (c *changedFile) head() string { return progress.OneLine(c.path) + " (" + c.what() + ")" }

// what says what happened to a file.
func (c *changedFile) what() string {
	if c.binary {
		return c.state + ", binary"
	}
	return fmt.Sprintf("%s, +%d -%d", c.state, c.added, c.removed)
}

// telling is the line of some that says most: a brace is in many places.
func (c *changedFile) telling(from, to int) (text string) {
	for n := from; n <= to; n++ {
		if l := strings.TrimSpace(c.lines[n].text); len(l) > len(text) {
			text = l
		}
	}
	return text
}

// mostSpans is how many parts of a file are named.
const mostSpans = 20

// spans names the lines that remarks may stand on: "3-8, 12".
func (c *changedFile) spans() string {
	var all []string
	from, last := 0, 0
	end := func() {
		switch {
		case last > from:
			all = append(all, fmt.Sprintf("%d-%d", from, last))
		case last > 0:
			all = append(all, fmt.Sprint(last))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.lines)) {
		if from == 0 || n != last+1 {
			end()
			from = n
		}
		last = n
	}
	end()
	if len(all) > mostSpans {
		all = append(all[:mostSpans], "…")
	}
	return strings.Join(all, ", ")
}

// show is the change in about most bytes: file by file as long as there is room, then the
// names of the others, which can be read.
func (c change) show(most int) string {
	var b strings.Builder
	var left []string
	for i := range c {
		f := &c[i]
		switch text := f.head() + "\n" + f.text; {
		case b.Len()+len(text) <= most:
			b.WriteString(text + "\n")
		case f.text == "":
			left = append(left, f.head())
		default:
			left = append(left, f.head()+", lines "+f.spans())
		}
	}
	if len(left) > 0 {
		shown := progress.Some(left, mostLeft, func(more int) string { return fmt.Sprintf("and %d more files (git diff with stat lists all)", more) })
		b.WriteString("Not shown, for want of room (read_file shows the files, git diff with path their changes):\n" + strings.Join(shown, "\n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// mostLeft is how many files are named whose changes are not shown.
const mostLeft = 200

// file is the one of a name, nil where the change has none.
func (c change) file(path string) *changedFile {
	for i := range c {
		if c[i].path == path {
			return &c[i]
		}
	}
	return nil
}
