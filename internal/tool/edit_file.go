package tool

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

//go:embed edit_file.md
var editFilePage string

const editFileSchema = `{"type":"object","properties":{"path":{"type":"string"},"old_text":{"type":"string"},"new_text":{"type":"string"},` +
	`"replace_all":{"type":"boolean"}},"required":["path","old_text","new_text"],"additionalProperties":false}`

type editFileArgs struct {
	Path string `json:"path"`
	Old  string `json:"old_text"`
	New  string `json:"new_text"`
	All  bool   `json:"replace_all"`
}

// maxEdit is the largest file that edit_file takes into memory, in bytes.
const maxEdit = 16 << 20

func editFileTool(w *workspaceFiles) Tool {
	return builtin[editFileArgs]{
		def: Describe("edit_file", editFilePage, editFileSchema, false, append(fileAliases, "old_string", "old_text", "old_str", "old_text", "search", "old_text", "old", "old_text",
			"new_string", "new_text", "new_str", "new_text", "replace", "new_text", "replacement", "new_text", "new", "new_text", "all", "replace_all")...),
		call: func(ctx context.Context, a editFileArgs) (Result, error) {
			shown, real, problem := w.target(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			if a.Old == "" {
				return Failf("old_text is empty. Give the text to replace, or create the file with write_file."), nil
			}
			w.write.Lock()
			defer w.write.Unlock()
			return w.editFile(ctx, shown, real, a)
		},
	}
}

func (w *workspaceFiles) editFile(ctx context.Context, shown, real string, a editFileArgs) (Result, error) {
	f, info, problem := w.open(real)
	if problem != "" {
		return Failf("%s", problem), nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	_ = f.Close() // it was only read
	if err != nil {
		return ended(ctx, w.explain(shown, err))
	}
	if len(data) > maxEdit {
		return Failf("%s has %d bytes; edit_file takes files of at most %d. Change it with a command in shell.", shown, info.Size(), maxEdit), nil
	}
	content := string(data)
	if isBinary(data) {
		return Failf("%s is %s of %d bytes. It cannot be edited as text.", shown, kindOfBinary(data), len(data)), nil
	}
	asked := a
	a = unnumbered(content, a)
	e, problem := matchEdit(content, a)
	e.otherwise = a != asked
	if problem == "" && len(e.places) == 0 && len(w.tokens(a.Old)) > 0 {
		return w.editMasked(shown, real, content, a, info)
	}
	if problem != "" {
		return Failf("%s: %s", shown, problem), nil
	}
	if at, there := e.done(content); len(e.places) == 0 && there {
		return Text(fmt.Sprintf("%s: nothing was changed: old_text is not in the file, and new_text is, once, at line %s. If that is not the edit you mean, read the file again.", shown, lineNumbers(content, []int{at}))), nil
	}
	if len(e.places) == 0 {
		meant, ok := reindent(content, a)
		if !ok {
			return Failf("%s: %s", shown, w.notFound(content, a.Old)), nil
		}
		e = meant
	}
	// Tokens of old that the file holds as they are stand for themselves.
	text, problem := w.restore(e.old, e.old, w.tokens(e.old), e.new)
	if problem != "" {
		return w.maskRefused(shown, problem), nil
	}
	for i := range e.places {
		e.places[i].text = text
	}
	return w.finishEdit(shown, real, content, e, info)
}

// editMasked makes an edit whose old text has tokens, on the file as the model
// sees it.
func (w *workspaceFiles) editMasked(shown, real, content string, a editFileArgs, info fs.FileInfo) (Result, error) {
	m := w.mask(content)
	e, problem := matchEdit(m.text, a)
	if problem != "" {
		return Failf("%s: %s", shown, problem), nil
	}
	if len(e.places) == 0 {
		return Failf("%s: %s", shown, w.notFound(m.text, a.Old)), nil
	}
	e.otherwise = true
	for i, p := range e.places {
		r, ok := m.region(p.from, p.to)
		if !ok {
			return Failf("%s: old_text contains a masking token, and it cannot be told which text of the file it stands for. Choose old_text from the lines around it.", shown), nil
		}
		text, problem := w.restore(content, e.old, r.marks, e.new)
		if problem != "" {
			return w.maskRefused(shown, problem), nil
		}
		e.places[i] = place{r.from, r.to, text}
	}
	return w.finishEdit(shown, real, content, e, info)
}

func (w *workspaceFiles) finishEdit(shown, real, content string, e edit, info fs.FileInfo) (Result, error) {
	if err := w.replace(real, e.apply(content), info.Mode().Perm()); err != nil {
		return Failf("%s", w.explain(shown, err)), nil
	}
	return Text(e.report(shown, content)), nil
}

// unnumbered is an edit without the numbers that stand in front of lines where they are shown,
// where each line of its old text has one and the file has no such text.
func unnumbered(content string, a editFileArgs) editFileArgs {
	if strings.Contains(content, a.Old) || strings.Contains(content, toCRLF(a.Old)) {
		return a
	}
	old, all, _ := withoutNumbers(a.Old)
	text, every, some := withoutNumbers(a.New)
	if !all || some && !every {
		return a
	}
	a.Old, a.New = old, text
	return a
}

// withoutNumbers is a text without the numbers of its lines, and whether all of them
// have one, and any.
func withoutNumbers(s string) (text string, all, some bool) {
	lines := strings.Split(s, "\n")
	all = true
	for i, l := range lines {
		bare := linePrefix().ReplaceAllString(l, "")
		numbered := bare != l
		some = some || numbered
		all = all && (numbered || i == len(lines)-1 && l == "")
		lines[i] = bare
	}
	return strings.Join(lines, "\n"), all && some, some
}

// leastDone is how long a new text must be, in bytes, to be known again.
const leastDone = 12

// done is where the new text stands, if it is there once and says enough to be no
// coincidence.
func (e edit) done(content string) (at int, there bool) {
	if len(strings.TrimSpace(e.new)) < leastDone || strings.Count(content, e.new) != 1 {
		return 0, false
	}
	return strings.Index(content, e.new), true
}

// edit is a replacement that was found in a file.
type edit struct {
	old, new  string  // in the file's line ends
	places    []place // ascending, not overlapping
	otherwise bool    // the file's text is not what the model wrote

	reindented bool // but for white space it is
}

// place is where old is in a file, in bytes, and what is put there.
type place struct {
	from, to int
	text     string
}

// at are the places' beginnings.
func (e edit) at() []int {
	at := make([]int, len(e.places))
	for i, p := range e.places {
		at[i] = p.from
	}
	return at
}

// matchEdit finds what a asks for in content. No places and no problem means
// that it is not there.
func matchEdit(content string, a editFileArgs) (e edit, problem string) {
	e.old, e.new = a.Old, a.New
	crlf, bare := lineEnds(content)
	// Models write LF. In a file of CRLF a bare LF can only be half a line end.
	if crlf > 0 && bare == 0 {
		e.old, e.new = toCRLF(a.Old), toCRLF(a.New)
	}
	if crlf > 0 && bare > 0 && !strings.Contains(content, e.old) && strings.Contains(content, toCRLF(a.Old)) {
		e.old, e.new = toCRLF(a.Old), toCRLF(a.New)
	}
	if e.old == e.new {
		return e, "old_text and new_text are the same, so there is nothing to change."
	}
	for from := 0; ; {
		i := strings.Index(content[from:], e.old)
		if i < 0 {
			break
		}
		e.places = append(e.places, place{from + i, from + i + len(e.old), e.new})
		from += i + 1
		if a.All {
			from += len(e.old) - 1
		}
	}
	if len(e.places) > 1 && !a.All {
		return e, fmt.Sprintf("old_text is there %d times, at lines %s. Take in more of the lines around the place you mean, or set replace_all.",
			len(e.places), lineNumbers(content, e.at()))
	}
	return e, ""
}

// lineEnds counts the CRLF and the bare LF of s.
func lineEnds(s string) (crlf, bare int) {
	crlf = strings.Count(s, "\r\n")
	return crlf, strings.Count(s, "\n") - crlf
}

func toCRLF(s string) string {
	return strings.ReplaceAll(lf(s), "\n", "\r\n")
}

// apply returns content with the replacement made at every place.
func (e edit) apply(content string) string {
	var b strings.Builder
	from := 0
	for _, p := range e.places {
		b.WriteString(content[from:p.from])
		b.WriteString(p.text)
		from = p.to
	}
	b.WriteString(content[from:])
	return b.String()
}

// maxNumbers is how many line numbers a message lists.
const maxNumbers = 20

// lineNumbers lists the lines of the byte offsets at, which ascend.
func lineNumbers(content string, at []int) string {
	var b strings.Builder
	number, from := 1, 0
	for n, i := range at {
		if n == maxNumbers {
			fmt.Fprintf(&b, " and %d more", len(at)-n)
			break
		}
		number += strings.Count(content[from:i], "\n")
		from = i
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d", number)
	}
	return b.String()
}

// The changed region as it is shown, in lines.
const (
	aroundEdit = 3
	maxRegion  = 40
)

// report tells what was changed. The model wrote both texts, so the changed region
// is shown only where the file's text is another one than it wrote.
func (e edit) report(shown, content string) string {
	after := e.apply(content)
	if after == "" {
		return fmt.Sprintf("Edited %s. It is now empty.", shown)
	}
	first := strings.Count(content[:e.places[0].from], "\n")
	last := first + strings.Count(strings.TrimSuffix(e.places[0].text, "\n"), "\n")
	head := fmt.Sprintf("Edited %s in %s, at lines %s.", shown, counted(len(e.places), "place"), lineNumbers(content, e.at()))
	if len(e.places) == 1 {
		head = fmt.Sprintf("Edited %s, now lines %d-%d.", shown, first+1, last+1)
		if first == last {
			head = fmt.Sprintf("Edited %s, now line %d.", shown, first+1)
		}
	}
	if e.reindented {
		head += " old_text is there with other white space: new_text was indented as the file is."
	}
	if !e.otherwise {
		return head
	}
	return head + "\n" + numbered(after, max(0, first-aroundEdit), last+aroundEdit+1, maxRegion)
}

// numbered shows the lines from (0-based) to before to of s, at most limit of
// them: of more, the first and the last.
func numbered(s string, from, to, limit int) string {
	lines := splitLines(s)
	to = min(to, len(lines))
	var b strings.Builder
	for i := from; i < to; i++ {
		if skip := to - from - limit; skip > 0 && i == from+limit/2 {
			fmt.Fprintf(&b, "[... %d lines not shown ...]\n", skip)
			i += skip
		}
		text := strings.TrimSuffix(lines[i], "\r")
		fmt.Fprintf(&b, "%d\t%s\n", i+1, shorten([]byte(text), 300, int64(len(text))))
	}
	return b.String()
}

// splitLines splits s at LF; a line end at the end of s starts no line.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
