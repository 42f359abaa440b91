package ops

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/i18n"
)

// CheckOptions choose what Check does and prints.
type CheckOptions struct {
	Repair   bool
	JSON     bool // one object per finding, then one of the whole
	Lang     i18n.Lang
	Viewer   contextstore.Viewer // who must be an administrator: every context is read
	Progress func(fsck.Progress)
	Plans    string // planning.history.directory, absolute; "" where the histories lie in their contexts
}

// Check looks at every context below base and prints a line for each finding
// as it is made, and one with the counts. Damage is in the report, not in the
// error.
func Check(ctx context.Context, w io.Writer, base string, o CheckOptions) (fsck.Report, error) {
	if !o.Viewer.Admin {
		return fsck.Report{}, i18n.E("check.not_admin", base, o.Viewer.User)
	}
	p := &printer{w: w}
	r, err := fsck.Check(ctx, base, fsck.Options{Repair: o.Repair, Progress: o.Progress, Plans: o.Plans, Found: func(f fsck.Finding) {
		if o.JSON {
			p.json(findingJSON(f))
			return
		}
		p.printf("%s\n", findingLine(f, o))
	}})
	if err != nil {
		return r, err
	}
	switch {
	case o.JSON:
		p.json(map[string]any{"type": "summary", "contexts": r.Contexts, "bytes": r.Bytes, "in_use": r.InUse, "newer_format": r.NotKnown,
			"found": r.Found, "mended": r.Mended, "left": r.Left})
		return r, p.err
	case r.Found == 0:
		p.printf("%s\n", o.Lang.T("check.clean", r.Contexts, r.InUse))
	default:
		p.printf("%s\n", o.Lang.T("check.summary", r.Contexts, r.InUse, r.Found, r.Mended, r.Left))
	}
	if r.NotKnown > 0 {
		p.printf("%s\n", o.Lang.T("check.unknown", r.NotKnown))
	}
	return r, p.err
}

func (p *printer) json(v any) { p.raw(string(encoded(p, v)) + "\n") }

// findingLine is a finding for people: whose, where, what, and what was or can
// be done.
func findingLine(f fsck.Finding, o CheckOptions) string {
	where := f.Path
	if f.UUID != "" {
		where = contextstore.Short(f.UUID)
		if f.File != "" {
			where += " " + f.File
		} else {
			where += " " + filepath.Dir(f.Path) + "/"
		}
	}
	if f.Line > 0 {
		where += " (" + o.Lang.T("check.place", f.Line, f.Byte) + ")"
	}
	s := where + ": " + f.What(o.Lang)
	switch {
	case f.Note:
	case f.Mended:
		s += " — " + o.Lang.T("check.mended", f.Does(o.Lang))
	case f.Err != nil:
		s += " — " + o.Lang.T("check.failed", f.Err)
	case f.Action != "" && !o.Repair:
		s += " — " + o.Lang.T("check.mendable", f.Does(o.Lang))
	default:
		s += " — " + o.Lang.T("check.left")
	}
	return clean(s)
}

// findingJSON is a finding for programs; kind and action are words that stay.
func findingJSON(f fsck.Finding) map[string]any {
	m := map[string]any{"type": "finding", "uuid": f.UUID, "path": f.Path, "file": f.File, "kind": f.Kind, "what": f.What(i18n.English),
		"action": f.Action, "mended": f.Mended, "note": f.Note}
	if f.Line > 0 {
		m["line"], m["byte"] = f.Line, f.Byte
	}
	if f.Err != nil {
		m["error"] = f.Err.Error()
	}
	return m
}

// Reindex rebuilds the index of base, and what is searched, and prints what became of it.
func Reindex(ctx context.Context, w io.Writer, base string, o CheckOptions) (fsck.ReindexReport, error) {
	if !o.Viewer.Admin {
		return fsck.ReindexReport{}, i18n.E("check.not_admin", base, o.Viewer.User)
	}
	r, err := fsck.Reindex(ctx, base, o.Progress)
	if err != nil {
		return r, err
	}
	texts, err := search.Rebuild(ctx, search.Options{BaseDir: base, Plans: o.Plans}, func(n int64) {
		if o.Progress != nil {
			o.Progress(fsck.Progress{Contexts: n})
		}
	})
	if err != nil {
		return r, err
	}
	p := &printer{w: w}
	if o.JSON {
		p.json(map[string]any{"contexts": r.Contexts, "rows": r.Rows, "searchable": texts, "damaged": notNil(r.Damaged), "second_live": notNil(r.SecondLive), "more": r.More})
		return r, p.err
	}
	for _, s := range r.Damaged {
		p.printf("%s\n", clean(o.Lang.T("reindex.damaged", s)))
	}
	for _, s := range r.SecondLive {
		p.printf("%s\n", clean(o.Lang.T("reindex.second", s)))
	}
	if r.More > 0 {
		p.printf("%s\n", o.Lang.T("reindex.more", r.More))
	}
	p.printf("%s\n", o.Lang.T("reindex.done", r.Rows, r.Contexts))
	p.printf("%s\n", o.Lang.T("search.reindexed", texts))
	return r, p.err
}

func notNil(s []string) []string { return append([]string{}, s...) }

// What is audited of a look at a context.
func (o ShowOptions) What() string {
	what := ""
	for _, log := range []struct {
		shown bool
		name  string
	}{{o.Messages, "messages"}, {o.Summaries, "summaries"}, {o.Tools, "tools"}, {o.Effects, "effects"}, {o.Plan, "plan"}} {
		if log.shown {
			what += "," + log.name
		}
	}
	if what == "" {
		return "overview"
	}
	return what[1:]
}

// Counts is a check's result in one line, for the audit.
func Counts(r fsck.Report) string {
	return fmt.Sprintf("contexts %d, found %d, mended %d, left %d", r.Contexts, r.Found, r.Mended, r.Left)
}
