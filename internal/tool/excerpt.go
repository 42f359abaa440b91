package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

const defaultOutputLines = 200

// Excerpt shows a part of a text, which is named in what the model reads: at
// most limit of its lines from number from on, and of those that match pattern
// where there is one, each with its number, in about most bytes. 0 and less are
// the first line and 200 lines. The error is ctx's.
func Excerpt(ctx context.Context, name string, in io.Reader, from, limit int, pattern string, most int) (Result, error) {
	var re *needle
	if pattern != "" {
		var problem string
		if re, problem = newNeedle(pattern); problem != "" {
			return Failf("%s", problem), nil
		}
	}
	v := outputView{from: max(from, 1), limit: cmp.Or(max(limit, 0), defaultOutputLines), re: re, room: most - noteRoom}
	if err := v.read(ctx, in); err != nil {
		return ended(ctx, fmt.Sprintf("The output %s cannot be read: %v.", name, err))
	}
	return Text(v.text(name, pattern)), nil
}

// outputView is the part of an output that is shown.
type outputView struct {
	from, limit, room int
	re                *needle // nil for every line

	b     strings.Builder
	shown int
	last  int // the last line that is shown
	total int
	more  int // lines that match and are not shown
}

func (v *outputView) read(ctx context.Context, r io.Reader) error {
	lines := newLineReader(r, searchLine)
	for {
		l, err := lines.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if v.total = lines.n; v.total < v.from {
			continue
		}
		var where []int
		most := maxLine
		if v.re != nil {
			if where, _ = v.re.in(l); where == nil {
				continue
			}
			most = searchShown
		}
		text := fmt.Sprintf("%d\t%s\n", lines.n, shorten(l.text, most, l.size))
		if where != nil && where[1] > searchShown {
			text = fmt.Sprintf("%d\t%s\n", lines.n, around(l, where))
		}
		if v.more > 0 || v.shown == v.limit || len(text) > v.room && v.shown > 0 {
			v.more++
			continue
		}
		v.b.WriteString(text)
		v.room -= len(text)
		v.shown, v.last = v.shown+1, lines.n
	}
}

func (v *outputView) text(id, pattern string) string {
	what := "line"
	if v.re != nil {
		what = "matching line"
	}
	switch {
	case v.total < v.from:
		return fmt.Sprintf("%s has %s; from_line %d is past its end.", id, counted(v.total, "line"), v.from)
	case v.shown == 0:
		return fmt.Sprintf("No line of %s from %d on matches %s; it has %s.", id, v.from, clip(pattern, 200), counted(v.total, "line"))
	case v.more > 0:
		return fmt.Sprintf("%s[%s of %s shown, %d more; continue with from_line=%d]\n", v.b.String(), counted(v.shown, what), id, v.more, v.last+1)
	}
	return fmt.Sprintf("%s[%s of %s shown, of %d in all]\n", v.b.String(), counted(v.shown, what), id, v.total)
}
