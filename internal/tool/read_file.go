package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed read_file.md
var readFilePage string

const readFileSchema = `{"type":"object","properties":{"path":{"type":"string"},` +
	`"start_line":{"type":"integer","minimum":1},"end_line":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`

type readFileArgs struct {
	Path  string `json:"path"`
	Start Number `json:"start_line"`
	End   Number `json:"end_line"`
}

// maxLine is how much of one line is shown, in bytes.
const maxLine = 2000

func lineCut(size int64) string { return fmt.Sprintf(" [line cut, %d bytes long]", size) }

func readFileTool(w *workspaceFiles) Tool {
	return builtin[readFileArgs]{
		def: Describe("read_file", readFilePage, readFileSchema, true, append(fileAliases, "offset", "start_line", "from_line", "start_line", "line", "start_line", "to_line", "end_line")...),
		call: func(ctx context.Context, a readFileArgs) (Result, error) {
			rel, problem := w.rel(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			if a.End != 0 && a.End < a.Start {
				return Failf("end_line %d is before start_line %d.", a.End, a.Start), nil
			}
			return w.readFile(ctx, rel, max(int(a.Start), 1), int(a.End))
		},
	}
}

// maxCounted is how much of a file is read, in bytes, only to say how many lines
// it has.
const maxCounted = 256 << 20

// readFile streams the file to its end, since the number of lines is part of
// the answer; only what is shown is kept.
func (w *workspaceFiles) readFile(ctx context.Context, rel string, start, end int) (Result, error) {
	f, info, problem := w.open(rel)
	if problem != "" {
		return Failf("%s", problem), nil
	}
	defer func() { _ = f.Close() }() // it was only read
	// A file that grows while it is read is read as long as it was.
	lines := newLineReader(io.LimitReader(f, max(info.Size(), 1)), maxLine)
	if isBinary(lines.peek()) {
		return Failf("%s", binaryNote(shownName(rel), lines.peek(), info.Size())), nil
	}
	v := view{start: start, end: end, numbered: w.numbered, room: w.max - len(rel) - 400}
	if err := v.read(ctx, lines); err != nil {
		return ended(ctx, w.explain(rel, err))
	}
	if now, err := f.Stat(); err == nil && now.Size() > info.Size() {
		v.grew = true
	}
	return v.result(shownName(rel)), nil
}

// view is the part of a file that is shown.
type view struct {
	start, end int // end 0: to the end of the file
	room       int // bytes left for lines
	numbered   bool
	total      int
	last       int // the last line shown, 0 while there is none
	full       bool
	crlf       bool
	invalid    bool
	uncounted  bool // there are more than total lines
	grew       bool
	b          strings.Builder
}

// read takes in all lines, or as many as are worth counting.
func (v *view) read(ctx context.Context, lines *lineReader) error {
	for {
		l, err := lines.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		v.add(l)
		if over := v.full || v.end != 0 && v.total >= v.end; over && lines.bytes > maxCounted {
			v.uncounted = true
			return nil
		}
	}
}

func (v *view) add(l line) {
	v.total++
	if v.full || v.total < v.start || v.end != 0 && v.total > v.end {
		return
	}
	v.crlf = v.crlf || l.crlf
	// A rune at the cut of a long line is no fault of the file.
	v.invalid = v.invalid || int64(len(l.text)) == l.size && !utf8.Valid(l.text)
	shown := shorten(l.text, maxLine, l.size) + "\n"
	if v.numbered {
		shown = strconv.Itoa(v.total) + ": " + shown
	}
	if len(shown) > v.room && v.last != 0 {
		v.full = true
		return
	}
	shown = clip(shown, max(v.room, 1))
	v.room -= len(shown)
	v.last = v.total
	v.b.WriteString(shown)
}

func (v *view) result(rel string) Result {
	if v.total == 0 {
		return Text(rel + ": empty file, 0 lines")
	}
	if v.last == 0 {
		return Failf("%s has %d lines; start_line %d is past its end.", rel, v.total, v.start)
	}
	var notes strings.Builder
	if v.crlf {
		notes.WriteString(", CRLF line ends")
	}
	if v.invalid {
		notes.WriteString(", not valid UTF-8: some bytes are shown as \uFFFD")
	}
	if v.grew {
		notes.WriteString(", it is growing")
	}
	more := ""
	if v.uncounted {
		more = "more than "
	}
	what := fmt.Sprintf("lines %d-%d of %s%d", v.start, v.last, more, v.total)
	if v.start == 1 && v.last == v.total && !v.uncounted {
		what = counted(v.total, "line")
	}
	text := fmt.Sprintf("%s: %s%s\n%s", rel, what, notes.String(), v.b.String())
	if v.full {
		text += fmt.Sprintf("[cut to fit; continue with start_line=%d]\n", v.last+1)
	}
	return Text(text)
}
