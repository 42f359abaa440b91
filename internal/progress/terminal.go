package progress

import (
	"fmt"
	"slices"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// Lines is the report for a terminal: at most height lines of at most width
// columns, the most important ones where there is little room. It has no escape
// sequences in it, whatever its texts hold.
func (r *Report) Lines(l i18n.Lang, width, height int, now time.Time) []string {
	if width < 1 || height < 1 {
		return nil
	}
	at := r.stage(l, r.Branch)
	if r.Phase != "" {
		at = r.chainShown(l)
	}
	if k := r.place(); k > 0 {
		at += "  " + l.T("progress.subtask", k, len(r.Items))
	}
	counts := l.T("progress.live_counts", r.Calls, r.Tools, r.Tokens, r.cost(l), elapsed(now.Sub(r.Started)))
	if r.Streamed > 0 {
		counts = l.T("progress.live_stream", r.Streamed) + l.T("progress.comma") + counts
	}
	lines := []string{at}
	if height > 1 {
		lines = append(lines, r.listShown(l, height-2)...)
		lines = append(lines, counts)
	}
	for i := range lines {
		lines[i] = Fit(redact.Printable(OneLine(lines[i])), width)
	}
	return lines
}

// chainShown are the phases in characters that are one column wide everywhere.
func (r *Report) chainShown(l i18n.Lang) string {
	return r.chain(l, " > ", map[stand]string{over: "[x] ", amiss: "[!] ", without: "[-] "}, map[task.Status]string{"": "[>] "})
}

// place is the number of the subtask at hand, from 1; 0 for none.
func (r *Report) place() int {
	return 1 + slices.IndexFunc(r.Items, func(it planning.Item) bool { return it.ID == r.Current })
}

// listShown is the part of the checklist around the subtask at hand that goes into
// height lines.
func (r *Report) listShown(l i18n.Lang, height int) (lines []string) {
	n := len(r.Items)
	if n == 0 || height < 1 {
		return nil
	}
	from, to := 0, n
	if n > height {
		room := max(height-1, 1) // one line tells of the rest
		from = max(0, min(max(r.place()-1, 0)-room/2, n-room))
		to = from + room
	}
	marks := map[string]string{"": "[ ] ", here: "[>] ", planning.Done: "[x] ", planning.Failed: "[!] ", planning.Blocked: "[!] ", planning.Skipped: "[-] "}
	for _, it := range r.Items[from:to] {
		lines = append(lines, marks[r.how(it)]+planning.Title(l, it.ID)+": "+l.Translate(it.Text))
	}
	if n > height && height > 1 {
		lines = append(lines, l.T("progress.live_more", n-(to-from)))
	}
	return lines
}

// elapsed is a duration as m:ss, or h:mm:ss.
func elapsed(d time.Duration) string {
	s := int(max(d, 0).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
