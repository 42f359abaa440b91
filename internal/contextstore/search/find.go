package search

import (
	"context"
	"database/sql"
	"fmt"
	"math/bits"
	"strings"
	"time"
	"unicode"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Filter says which runs are looked for; a zero field asks nothing.
type Filter struct {
	User     string
	Status   task.Status // a final one
	Repo     string      // owner/name, or name
	From, To string      // days of their end, UTC, both included: 2026-05-30
	In       string      // summaries, messages or tools; "" is all but tools
	Limit    int         // of hits
}

// Hit is a run in which all words stand, and the line that holds most of them.
type Hit struct {
	View contextstore.View
	Line Line
	// Text is the part of the line around the words, and Marks where they are in it: [from, to) in bytes.
	Text  string
	Marks [][2]int
}

// shown is how much of a line a Hit has, in bytes.
const shown = 240

// lookedAt is how many runs are looked at for one hit, where the files of some no longer have what
// the database knew, or the viewer may not see them.
const lookedAt = 10

// In are the words of Filter.In.
var In = []string{"summaries", "messages", "tools"}

// columns are the parts that a Filter.In names.
func (f Filter) columns() (list []Part, err error) {
	switch f.In {
	case "":
		return []Part{Title, SummaryPart, Request, Plan, MessagesPart}, nil
	case "summaries":
		return []Part{SummaryPart}, nil
	case "messages":
		return []Part{Request, MessagesPart}, nil
	case "tools":
		return []Part{ToolsPart}, nil
	}
	return nil, i18n.E("search.bad_in", f.In, strings.Join(In, ", "))
}

// Check reports what of a filter cannot be; days that are none ask nothing.
func (f Filter) Check() error {
	if _, err := f.columns(); err != nil {
		return err
	}
	if f.Status != "" && !f.Status.Final() {
		return i18n.E("search.bad_status", string(f.Status))
	}
	return nil
}

// Find returns the runs that ended, that the viewer may see and that hold all that is looked for,
// the one that ended last first; more says that there may be others. It reads the files of what it
// returns, no more.
func (d *DB) Find(ctx context.Context, who contextstore.Viewer, q Query, f Filter) (hits []Hit, more bool, err error) {
	if err := f.Check(); err != nil {
		return nil, false, err
	}
	if len(q) == 0 {
		return nil, false, i18n.E("search.no_words")
	}
	if _, err := d.file.Check(ctx); err != nil {
		return nil, false, err
	}
	in, _ := f.columns()
	words, err := q.expression(func(beginning string) ([]string, error) { return d.words(ctx, beginning) })
	if err != nil {
		return nil, false, err
	}
	match := f.match(who, in, words)
	from, to := f.days()
	for looked := 0; ; {
		found, err := database.List(ctx, d.file, refOf, `SELECT runs.id, runs.uuid FROM (SELECT rowid FROM texts WHERE texts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?) AS found
			JOIN runs ON runs.id = found.rowid ORDER BY runs.id DESC`, match, from, to, pageRuns)
		if err != nil {
			return nil, false, fmt.Errorf("search %s: %w", d.file.Path, err)
		}
		for _, r := range found {
			if len(hits) == f.Limit || looked == lookedAt*f.Limit {
				return hits, true, nil
			}
			looked++
			h, ok, err := d.look(ctx, who, r.uuid, q, f, in)
			if err != nil {
				return nil, false, err
			}
			if ok {
				hits = append(hits, h)
			}
			to = r.id - 1
		}
		if len(found) < pageRuns {
			return hits, false, nil
		}
	}
}

// maxWords is how many words may begin with what was given: each is looked for.
const maxWords = 300

// words are the words in the texts that begin with something.
func (d *DB) words(ctx context.Context, beginning string) (all []string, err error) {
	all, err = database.List(ctx, d.file, database.Text, `SELECT term FROM terms WHERE term >= ? AND term < ? LIMIT ?`, beginning, beginning+string(unicode.MaxRune), maxWords+1)
	if err == nil && len(all) > maxWords {
		err = i18n.E("search.too_many", beginning, maxWords)
	}
	return all, err
}

// pageRuns is how many runs are asked for at once.
const pageRuns = 32

type ref struct {
	id   int64
	uuid string
}

func refOf(rows *sql.Rows) (r ref, err error) {
	err = rows.Scan(&r.id, &r.uuid)
	return r, err
}

// match is the filter and the words as FTS5 reads them.
func (f Filter) match(who contextstore.Viewer, in []Part, words string) string {
	var all []string
	add := func(terms ...string) { all = append(all, `facet : (`+strings.Join(terms, " OR ")+`)`) }
	if !who.Admin {
		add(facet("user", who.User), facet("user", who.Account))
	}
	if f.User != "" {
		add(facet("user", f.User))
	}
	if f.Status != "" {
		add(facet("status", string(f.Status)))
	}
	if f.Repo != "" {
		add(facet("repo", f.Repo))
	}
	cols := make([]string, len(in))
	for i, p := range in {
		cols[i] = p.String()
	}
	return strings.Join(append(all, `{`+strings.Join(cols, " ")+`} : (`+words+`)`), " AND ")
}

// days are the ids of the runs that ended on the days of the filter.
func (f Filter) days() (from, to int64) {
	to = 1<<63 - 1
	if t, err := time.Parse(time.DateOnly, f.From); err == nil {
		from = t.UnixMilli()
	}
	if t, err := time.Parse(time.DateOnly, f.To); err == nil {
		to = t.AddDate(0, 0, 1).UnixMilli() - 1
	}
	return from, to
}

// look reads a run that was found. It is none where it is gone, may not be seen, is another than
// the database knew, or no longer holds the words.
func (d *DB) look(ctx context.Context, who contextstore.Viewer, uuid string, q Query, f Filter, in []Part) (h Hit, ok bool, err error) {
	v, ok := d.see(who, uuid)
	if !ok || !f.takes(v) {
		return h, false, nil
	}
	h.View = v
	var wanted [parts]bool
	for _, p := range in {
		wanted[p] = true
	}
	seen, best := uint64(0), 0
	err = d.reader.eachLine(ctx, v, func(p Part) bool { return wanted[p] }, func(l Line) bool {
		found, at := q.find(l.Text)
		seen |= found
		if n := bits.OnesCount64(found); n > best {
			best, h.Line = n, l
			h.Text, h.Marks = around(l.Text, at, shown)
		}
		return best < bits.OnesCount64(q.all())
	})
	if err != nil && ctx.Err() == nil { // a file of it cannot be read: what was found till then counts
		err = nil
	}
	return h, seen == q.all(), err
}

// see reads a run that has ended, if the viewer may see it.
func (d *DB) see(who contextstore.Viewer, uuid string) (contextstore.View, bool) {
	dir, err := contextstore.FindDir(d.dir, uuid)
	if err != nil {
		return contextstore.View{}, false
	}
	v, err := contextstore.ReadView(dir)
	return v, err == nil && who.MaySee(v.Metadata) && v.Status().Final()
}

// takes reports whether a run is what the filter asks for: a facet of another may be the same.
func (f Filter) takes(v contextstore.View) bool {
	name := strings.ToLower(strings.TrimPrefix(v.Metadata.TaskKey.Owner+"/"+v.Metadata.TaskKey.Repo, "/"))
	repo := strings.ToLower(f.Repo)
	return (f.User == "" || strings.EqualFold(f.User, v.Metadata.User)) && (f.Status == "" || f.Status == v.Status()) &&
		(repo == "" || name == repo || strings.HasSuffix(name, "/"+repo))
}
