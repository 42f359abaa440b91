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
// of its application, "" where it was not applied.
func (j Job) Left(end string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task: %s (job %s)\n", j.Title, j.Job)
	if s := j.State; s.Status == Denied {
		if s.Approver != System {
			j.State.Approver = i18n.English.T("agent.somebody")
		}
		end = j.Denial(i18n.English)
	}
	fmt.Fprintf(&b, "Outcome: %s\n\nWhat was proposed: %s\n", end, j.Plan)
	for _, f := range j.Files {
		fmt.Fprintf(&b, "- %s %s (+%d -%d)\n", f.Action, f.Path, f.Added, f.Removed)
	}
	for _, n := range j.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	if j.State.Status != Denied || !j.Grantable() {
		return b.String()
	}
	if raw, err := j.ReadPatch(); err == nil {
		n := min(len(raw), keptPatch)
		fmt.Fprintf(&b, "\nThe patch, which was not applied:\n%s\n", strings.ToValidUTF8(string(raw[:n]), ""))
		if more := len(raw) - n; more > 0 {
			fmt.Fprintf(&b, "[%d more bytes]\n", more)
		}
	}
	return b.String()
}
