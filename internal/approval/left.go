package approval

import (
	"fmt"
	"strings"

	"toritsugi/internal/i18n"
)

// keptPatch is how much of a patch that was not applied a job leaves to later ones, in
// bytes.
const keptPatch = 3000

// Left is what a job that proposed leaves to later ones of its conversation, once it is
// over: what was decided, first of all, by nobody's name (inherit §8.1). end says what came
// of it where it was not denied. A record is in English; whoever is told of it is told in
// their language.
func (j Job) Left(l i18n.Lang, end string) string {
	var b strings.Builder
	line := func(key string, args ...any) { b.WriteString(l.T("approval.left_"+key, args...) + "\n") }
	denied := j.State.Status == Denied
	switch s := j.State; {
	case !denied || end != "":
	case s.Approver == System:
		end = j.Denial(l)
	case s.Reason == "":
		end = l.T("approval.left_denied")
	default:
		end = l.T("approval.left_denied_for", s.Reason)
	}
	line("task", j.Title, j.Job)
	line("outcome", end)
	b.WriteString("\n")
	line("plan", j.Plan)
	for _, f := range j.Files {
		fmt.Fprintf(&b, "- %s %s (+%d -%d)\n", f.Action, f.Path, f.Added, f.Removed)
	}
	for _, n := range j.Notes {
		line("note", n)
	}
	if !denied || !j.Grantable() {
		return b.String()
	}
	if raw, err := j.ReadPatch(); err == nil {
		n := min(len(raw), keptPatch)
		b.WriteString("\n")
		line("patch")
		b.WriteString(strings.ToValidUTF8(string(raw[:n]), "") + "\n")
		if more := len(raw) - n; more > 0 {
			line("more", more)
		}
	}
	return b.String()
}
