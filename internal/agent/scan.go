package agent

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/scan"
)

// shownFindings is how many findings a report lists.
const shownFindings = 15

// review is what a reviewer has to know about the commit besides the checks.
type review struct {
	scan.Report
	failed bool // not all of the commit could be read
}

// lookThrough notes what a reviewer would object to in the commit. It fails no
// run: what cannot be read is said.
func (r *verification) lookThrough(ctx context.Context) error {
	r.review = review{}
	if r.commit == "" {
		return nil
	}
	var commands []string
	for _, c := range r.Checks {
		commands = append(commands, c.Command)
	}
	found, err := scan.Written(func(to io.Writer) error { return r.Workspace.Review(ctx, r.commit, scan.Whole, to) },
		scan.Options{Checks: commands, Before: func(path string) (string, error) { return r.ofBase(ctx, path) }})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Log.Warn("The commit cannot be looked through for a reviewer: " + r.Store.Redact(err.Error()))
	}
	r.review = review{found, err != nil}
	return nil
}

// ofBase is the beginning of a file that the base has, "" for none.
func (r *verification) ofBase(ctx context.Context, path string) (string, error) {
	found, err := r.Workspace.Find(ctx, r.Workspace.Base(), []string{path})
	if err != nil || found[path].ID == "" {
		return "", err
	}
	blobs, err := r.Workspace.Blobs(ctx, []string{found[path].ID}, 256<<10)
	return string(blobs[found[path].ID].Data), err
}

// decided names what the change touches that may have made the checks pass, ""
// for nothing.
func (r *verification) decided() string {
	var names []string
	for _, f := range r.review.Findings {
		if name := progress.Span(r.Store.Redact(f.Path)); f.Decides() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > shownPoints {
		names = append(names[:shownPoints], "…")
	}
	return strings.Join(names, ", ")
}

// notes lists what a reviewer should look at, the gravest first; "" for nothing.
func (r *verification) notes(l i18n.Lang) string {
	var b strings.Builder
	shown, all := 0, 0
	for _, k := range scan.Kinds() {
		all += r.review.Counts[k]
		for _, f := range r.review.Findings {
			if f.Kind == k && shown < shownFindings {
				b.WriteString("- " + r.finding(l, f) + "\n")
				shown++
			}
		}
	}
	if all > shown {
		b.WriteString("- " + l.T("agent.comment_more", all-shown) + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("scan.heading") + "\n\n" + b.String()
}

// finding is one of them in a line.
func (r *verification) finding(l i18n.Lang, f scan.Finding) string {
	where := f.Path
	if f.Line > 0 && !f.Old {
		where += ":" + strconv.Itoa(f.Line)
	}
	s := progress.Span(r.Store.Redact(where)) + ": " + l.T("scan."+string(f.Why))
	if f.Lost > 0 {
		s += l.T("scan.lost_"+string(f.Why), f.Lost)
	}
	if text := cutLine(f.Text); text != "" && f.Why != scan.FileDeleted && r.harmless(text) {
		s += " " + progress.Span(text)
	}
	return s
}

// harmless reports whether a line of the patch may be repeated where people read:
// lines that were removed may hold what a report must not, or call somebody.
func (r *verification) harmless(text string) bool {
	for i := range len(text) - 1 {
		if text[i] == '#' && text[i+1] >= '0' && text[i+1] <= '9' { // an issue
			return false
		}
	}
	return !strings.Contains(text, "@") && !strings.Contains(text, "://") && r.Store.Redact(text) == text && len(r.delivery.Secrets(text)) == 0
}

// cutLine is a line that is short enough for a list.
func cutLine(s string) string { return progress.Cut(s, 100) }
