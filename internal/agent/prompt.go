package agent

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/folder"
)

// systemPrompt is the same for every run: no clock, no counters, no names, so
// that providers can cache it (DESIGN §3).
//
//go:embed system.md
var systemPrompt string

// maxIssueText is how much of an issue and of its comments the model is shown,
// in bytes each.
const maxIssueText = 60_000

// request is the first user message: the issue as data, and what the checks
// said before any change.
func request(is *folder.Issue, checks []contextstore.CheckRun, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task: %s\n\nIssue %s", is.Title, is.ID)
	if is.Author != "" {
		fmt.Fprintf(&b, ", opened by %s", is.Author)
	}
	if len(is.Labels) > 0 {
		fmt.Fprintf(&b, ", labels: %s", strings.Join(is.Labels, ", "))
	}
	fmt.Fprintf(&b, ".\n\n<issue>\n%s\n</issue>\n", cut(strings.TrimSpace(is.Body), most))
	if len(is.Comments) > 0 {
		var c strings.Builder
		for _, m := range is.Comments {
			author := m.Author
			if author == "" {
				author = "unknown"
			}
			fmt.Fprintf(&c, "%s:\n%s\n\n", author, strings.TrimSpace(m.Body))
		}
		fmt.Fprintf(&b, "\n<comments>\n%s\n</comments>\n", cutFront(strings.TrimSpace(c.String()), most))
	}
	b.WriteString("\n" + checkReport("Checks, run before any change", checks))
	return b.String()
}

// checkReport tells the model how the checks ended.
func checkReport(title string, checks []contextstore.CheckRun) string {
	if len(checks) == 0 {
		return title + ": the project has none.\n"
	}
	var b strings.Builder
	b.WriteString(title + ":\n")
	for _, c := range checks {
		switch {
		case c.Passed():
			fmt.Fprintf(&b, "- `%s` passed\n", c.Command)
		case c.TimedOut:
			fmt.Fprintf(&b, "- `%s` did not end in time\n%s", c.Command, fenced(c.Output))
		default:
			fmt.Fprintf(&b, "- `%s` failed with exit code %d\n%s", c.Command, c.ExitCode, fenced(c.Output))
		}
	}
	return b.String()
}

// feedback asks for another attempt after the checks failed.
func feedback(checks []contextstore.CheckRun) string {
	return checkReport("You said the work is done, so the checks were run", checks) +
		"\nA check that fails because of your change must pass. One that failed before your change and has nothing to do with the task may stay as it is; say so in your final answer.\n"
}

func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s\n[%d more bytes are not shown]", s[:n], len(s)-n)
}

func cutFront(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return fmt.Sprintf("[%d earlier bytes are not shown]\n%s", i, s[i:])
}
