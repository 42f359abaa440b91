package checkrun

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/progress"
	"toritsugi/internal/verdict"
)

// Report tells the model how checks ended; before are those of the base, for
// checks of after the change.
func (r *Runner) Report(title string, before, checks []contextstore.CheckRun) string {
	l := r.Lang
	var b strings.Builder
	b.WriteString(title + ":\n")
	for _, c := range checks {
		said, output := l.T("checks.failed", c.Command, c.ExitCode), ""
		if strings.TrimSpace(c.Output) != "" {
			output = progress.Fenced(c.Output)
		}
		switch {
		case c.Passed():
			said, output = l.T("checks.passed", c.Command), ""
		case c.TimedOut:
			said = l.T("checks.timed_out", c.Command)
		case c.Limit != "":
			said = l.T("checks.limit", c.Command, verdict.LimitText(l, c.Limit, c.Bound))
		}
		shown := verdict.Compare(before, c)
		if !c.Passed() && shown.Red && shown.Fresh == 0 { // what it prints the model was told
			if output = ""; !shown.Known() {
				said += "; " + l.T("checks.red")
			}
		}
		if text := shown.Text(l, func(name string) string { return name }); text != "" {
			said += "; " + text
		}
		b.WriteString("- " + said + "\n" + output)
	}
	if text := r.NeedsText(l); text != "" && len(Missing(checks)) > 0 {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// Feedback asks for another attempt after the checks.
func (r *Runner) Feedback(v verdict.Verdict) string {
	end := "checks.feedback_end"
	all := slices.Concat(v.Broken, v.Red)
	if len(all) == 0 {
		all, end = v.Fewer, "checks.feedback_fewer"
	}
	return r.Report(r.Lang.T("checks.feedback"), r.Before, all) + "\n" + r.Lang.T(end) + "\n"
}

// Told is what the model is told of the checks as it begins.
func (r *Runner) Told() string {
	var b strings.Builder
	var all []string
	for _, c := range r.Checks {
		all = append(all, "`"+c.Command+"`")
	}
	if len(all) > 0 {
		b.WriteString(r.Lang.T("checks.will", strings.Join(all, ", ")) + "\n")
	} else if len(r.NotRun) == 0 {
		b.WriteString(r.Lang.T("checks.none") + "\n")
	}
	for i, c := range r.NotRun {
		if i == 0 {
			b.WriteString(r.Lang.T("checks.left_out") + "\n")
		}
		fmt.Fprintf(&b, "- `%s` (%s)\n", c.Command, c.Program)
	}
	if text := r.NeedsText(r.Lang); text != "" {
		b.WriteString(text + "\n")
	}
	return b.String()
}
