package ops

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/i18n"
)

// SearchOptions say what is looked for, and how it is printed.
type SearchOptions struct {
	search.Filter
	Words    []string
	JSON     bool // one object a line
	Width    int  // columns of a line
	Lang     i18n.Lang
	Viewer   contextstore.Viewer
	Plans    string // planning.history.directory, absolute; "" where the histories lie in their contexts
	Model    string // search.similar.embeddings, whose vectors count as far as they are there
	Progress func(fsck.Progress)
	Note     func(string) // hears what the reader should know of the answer
}

// Search prints the runs that hold all words, the one that ended last first. What ended since the
// last look is read first, and so is all where there is no search.db. found is how many were printed.
func Search(ctx context.Context, w io.Writer, base string, o SearchOptions) (found int, err error) {
	q := search.Parse(o.Words)
	if err := errors.Join(o.Check(), checkDays(o.From, o.To)); err != nil || len(q) == 0 {
		if err == nil {
			err = i18n.E("search.no_words")
		}
		return 0, err
	}
	d, err := openSearch(ctx, base, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	hits, more, err := d.Find(ctx, o.Viewer, q, o.Filter)
	if err != nil {
		return 0, err
	}
	p := &printer{w: w}
	for _, h := range hits {
		if o.JSON {
			m := row(h.View)
			m["in"], m["number"], m["text"], m["marks"] = h.Line.Part.String(), h.Line.Number, h.Text, h.Marks
			m["file"] = h.Line.File
			p.json(m)
			continue
		}
		runLine(p, h.View, o.Width)
		room := max(o.Width-10-columns(place(o.Lang, h.Line))-2, 40)
		p.printf("          %s: %s\n", place(o.Lang, h.Line), fit(marked(h.Text, h.Marks, room), room))
	}
	if !o.JSON && len(hits) == 0 {
		p.printf("%s\n", o.Lang.T("search.nothing"))
	}
	if !o.JSON && more {
		p.printf("%s\n", o.Lang.T("search.more"))
	}
	return len(hits), p.err
}

// openSearch opens search.db and brings it up to date.
func openSearch(ctx context.Context, base string, o SearchOptions) (*search.DB, error) {
	d, err := search.Open(ctx, search.Options{BaseDir: base, Plans: o.Plans, Vectors: search.Vectors{Model: o.Model}})
	if err != nil {
		return nil, err
	}
	if err := d.CatchUp(ctx, func(n int64) {
		if o.Progress != nil {
			o.Progress(fsck.Progress{Contexts: n})
		}
	}); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if why := d.ReadOnly(); why != nil && o.Note != nil {
		o.Note(o.Lang.T("search.read_only", why))
	}
	return d, nil
}

// runLine is the line that names a run.
func runLine(p *printer, v contextstore.View, width int) {
	k, ended := v.Metadata.TaskKey, v.State.CompletedAt
	s := string(v.Status())
	if v.State.Unverified {
		s = "unverified"
	}
	p.printf("%-8s  %-10s  %s  %s\n", contextstore.Short(v.Metadata.UUID), s, ended.UTC().Format(time.DateOnly),
		fit(k.Repo+k.Number()+" "+v.Metadata.Title, max(width-34, 20)))
}

// place says where a line stands.
func place(l i18n.Lang, line search.Line) string {
	key := "search.in_" + line.Part.String()
	switch line.Part {
	case search.Title:
		return l.T(key)
	case search.Plan:
		return l.T(key, clean(line.File), line.Number)
	}
	return l.T(key, line.Number)
}

// marked is a text with what was found in it marked. What stands before that takes no more than
// half of the room, in columns.
func marked(text string, marks [][2]int, room int) string {
	var b strings.Builder
	at := 0
	if len(marks) > 0 {
		before := text[:marks[0][0]]
		for columns(before[at:]) > room/2 {
			_, n := utf8.DecodeRuneInString(before[at:])
			at += n
		}
		if at > 0 {
			b.WriteString("…")
		}
	}
	for _, m := range marks {
		b.WriteString(text[at:m[0]] + "«" + text[m[0]:m[1]] + "»")
		at = m[1]
	}
	return b.String() + text[at:]
}

// similarRuns is how many similar runs people are shown.
const similarRuns = 10

// Similar prints the runs on other tasks of the same repository that are like a run, the likest first.
func Similar(ctx context.Context, w io.Writer, base string, v contextstore.View, o SearchOptions) (err error) {
	d, err := openSearch(ctx, base, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	like, err := search.LikeOf(v)
	if err != nil {
		return err
	}
	all, err := d.Similar(ctx, o.Viewer, like, similarRuns)
	if err != nil {
		return err
	}
	p := &printer{w: w}
	name := strings.TrimPrefix(v.Metadata.TaskKey.Owner+"/"+v.Metadata.TaskKey.Repo, "/")
	switch {
	case o.JSON:
	case len(all) == 0:
		p.printf("%s\n", o.Lang.T("search.not_similar", name))
	default:
		p.printf("%s\n", o.Lang.T("search.similar", name))
	}
	for _, m := range all {
		if o.JSON {
			r := row(m.View)
			r["score"] = m.Score
			p.json(r)
			continue
		}
		p.printf("%3.0f%%  ", 100*m.Score)
		runLine(p, m.View, o.Width-6)
	}
	return p.err
}
