package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// Table prints results for people: a line for each case, or for each case the
// modes side by side, then the totals and why what was not resolved was not.
// asked is how many cases were to be run.
func Table(w io.Writer, all []Result, by Model, modes []Mode, asked int, lang i18n.Lang) error {
	p := &printer{w: w}
	width := 4
	for _, r := range all {
		width = max(width, len(r.Case))
	}
	if len(modes) == 1 {
		single(p, all, Sum(all, modes[0], by), width)
	} else {
		sideBySide(p, all, modes, by, width)
	}
	p.printf("\n")
	for _, m := range modes {
		t := Sum(all, m, by)
		name := string(m) + " (" + by.Name + ")"
		if t.Ran == asked {
			p.printf("%s\n", lang.T("eval.total", name, t.Resolved, t.Ran))
		} else {
			p.printf("%s\n", lang.T("eval.left_out", name, t.Resolved, t.Ran, t.Skipped, t.Errors, asked-t.Ran-t.Skipped-t.Errors))
		}
	}
	reasons(p, all, lang)
	if by.Scripted {
		p.printf("\n%s\n", lang.T("eval.scripted"))
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

const (
	numberHeads = "TURNS TOOLS      IN     OUT  CACHED      COST    TIME"
	wholeHeads  = "OUTCOME     RESOLVED CHECKS"
)

func single(p *printer, all []Result, t Total, width int) {
	p.printf("%-*s  %s %s\n", width, "CASE", wholeHeads, numberHeads)
	for _, r := range all {
		checks := "-"
		if r.Checks.Run > 0 {
			checks = fmt.Sprintf("%d/%d", r.Checks.Passed, r.Checks.Run)
		}
		p.printf("%-*s  %-11s %-8s %6s %s\n", width, r.Case, fit(r.Outcome, 11), r.word(), checks, numbers(r.Taken, r.began(), t.Scripted))
	}
	p.printf("%-*s  %-11s %-8s %6s %s\n", width, "", "", fmt.Sprintf("%d/%d", t.Resolved, t.Ran), "", numbers(t.Taken, t.Ran > 0, t.Scripted))
}

func sideBySide(p *printer, all []Result, modes []Mode, by Model, width int) {
	var names, heads []string
	const cell = 9 + len(numberHeads)
	for _, m := range modes {
		names = append(names, fmt.Sprintf("%-*s", cell, strings.ToUpper(string(m))))
		heads = append(heads, fmt.Sprintf("%-8s ", "RESOLVED")+numberHeads)
	}
	p.printf("%-*s  %s\n", width, "", strings.TrimRight(strings.Join(names, " | "), " "))
	p.printf("%-*s  %s\n", width, "CASE", strings.Join(heads, " | "))
	row := map[string][]string{}
	var order []string
	for _, r := range all {
		if row[r.Case] == nil {
			order, row[r.Case] = append(order, r.Case), make([]string, len(modes))
		}
		row[r.Case][slices.Index(modes, r.Mode)] = fmt.Sprintf("%-8s %s", fit(r.word(), 8), numbers(r.Taken, r.began(), by.Scripted))
	}
	for _, c := range order {
		for i := range row[c] {
			row[c][i] = cmp.Or(row[c][i], strings.Repeat(" ", cell))
		}
		p.printf("%-*s  %s\n", width, c, strings.Join(row[c], " | "))
	}
	var sums []string
	for _, m := range modes {
		t := Sum(all, m, by)
		sums = append(sums, fmt.Sprintf("%-8s %s", fmt.Sprintf("%d/%d", t.Resolved, t.Ran), numbers(t.Taken, t.Ran > 0, t.Scripted)))
	}
	p.printf("%-*s  %s\n", width, "", strings.Join(sums, " | "))
}

// word is the result in a word.
func (r *Result) word() string {
	switch {
	case r.Outcome == Skipped, r.Outcome == Errored:
		return r.Outcome
	case r.Outcome == Interrupted:
		return "-"
	case r.Resolved:
		return "yes"
	}
	return "no"
}

func (r *Result) began() bool { return r.Outcome != Skipped }

// numbers are the columns of numberHeads. A script reports no tokens, so they are
// estimates, marked by ~. What is not known is a dash: a price may be missing.
func numbers(t Taken, began, scripted bool) string {
	if !began {
		return strings.Repeat(" ", len(numberHeads)-1) + "-"
	}
	in, out, cached, cost := count(t.PromptTokens), count(t.CompletionTokens), count(t.CachedTokens), contextstore.Dollars(t.CostMicroUSD)
	switch {
	case scripted && t.PromptTokens == 0:
		e := t.Estimated
		in, out, cached, cost = "~"+count(e.Sent), "~"+count(e.Answered), "~"+count(e.Cached), "-"
	case t.UnpricedCalls > 0 && t.CostMicroUSD == 0:
		cost = "?"
	case t.UnpricedCalls > 0:
		cost = ">" + cost
	}
	return fmt.Sprintf("%5d %5d %7s %7s %7s %9s %7s", t.Turns, t.ToolCalls, in, out, cached, cost, seconds(t.Millis))
}

// count shortens a number to six characters.
func count(n int64) string {
	switch {
	case n < 100_000:
		return fmt.Sprint(n)
	case n < 100_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func seconds(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < 10*time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}

func fit(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// reasons tells why cases were not resolved, or not run.
func reasons(p *printer, all []Result, lang i18n.Lang) {
	for _, group := range []struct {
		head string
		in   func(*Result) bool
	}{
		{"eval.why", func(r *Result) bool { return !r.Resolved && r.Outcome != Skipped }},
		{"eval.why_skip", func(r *Result) bool { return r.Outcome == Skipped }},
	} {
		head := false
		for _, r := range all {
			if !group.in(&r) {
				continue
			}
			if !head {
				head = true
				p.printf("\n%s\n", lang.T(group.head))
			}
			p.printf("  %s (%s): %s\n", r.Case, r.Mode, r.why(lang))
			for _, line := range lastLines(r.Verdict) {
				p.printf("    %s\n", line)
			}
			if r.Dir != "" {
				p.printf("    %s\n", r.Dir)
			}
		}
	}
}

// why is the reason in a sentence.
func (r *Result) why(lang i18n.Lang) string {
	if r.Outcome == Skipped || r.Outcome == Interrupted {
		return r.Reason
	}
	if !r.Verdict.Ran {
		return r.Outcome + ": " + r.Reason
	}
	if r.Verdict.TimedOut {
		return lang.T("eval.check_time")
	}
	s := lang.T("eval.check_said", r.Verdict.ExitCode)
	if r.Verdict.Limit != "" {
		s += " (" + r.Verdict.Limit + ")"
	}
	return s
}

// shownLines is how much of what a hidden check printed the table shows.
const shownLines = 3

func lastLines(v Verdict) []string {
	text := strings.TrimSpace(v.Output)
	if text == "" || v.Passed() {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if r := []rune(l); len(r) > 160 {
			lines[i] = string(r[:160]) + "…"
		}
	}
	return lines[max(0, len(lines)-shownLines):]
}

// WriteJSON writes a result or a total as one line.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
