package ops

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"toritsugi/internal/i18n"
)

// Goal is one of the figures by which the seeds measure success: store-v2 §12.4 and §12.1.
type Goal struct {
	Name  string `json:"goal"`
	Wants string `json:"wants"`
	Is    string `json:"is,omitempty"`
	// State is "met", "missed", or "unmeasured" where the records do not tell.
	State string `json:"state"`
	How   string `json:"how"` // it was measured, or why it was not
}

// The seeds' figures.
const (
	goalDisk      = 5_000_000_000 // bytes in goalDays
	goalDays      = 30
	goalFailed    = 5  // percent of the runs that ended
	goalSummaries = 95 // percent of the summaries that were begun
)

// Goals measures the seeds' figures by the runs that the options take; disk by the last 30 days.
func Goals(ctx context.Context, base string, o StatsOptions) (all []Goal, err error) {
	r, err := ReadStats(ctx, base, o)
	if err != nil {
		return nil, err
	}
	month := o
	if month.To == "" {
		month.To = o.Now.UTC().Format(time.DateOnly)
	}
	to, err := time.Parse(time.DateOnly, month.To)
	if err != nil {
		return nil, err
	}
	month.From = to.AddDate(0, 0, 1-goalDays).Format(time.DateOnly)
	lately, err := ReadStats(ctx, base, month)
	if err != nil {
		return nil, err
	}
	add := func(name, wants, is string, met, measured bool) {
		g := Goal{Name: name, Wants: wants, Is: is, State: "missed", How: o.Lang.T("stats.how_" + name)}
		switch {
		case !measured:
			g.Is, g.State, g.How = "", "unmeasured", o.Lang.T("stats.not_"+name)
		case met:
			g.State = "met"
		}
		all = append(all, g)
	}
	exact := func(n, of int64) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(of, 1))) }
	e := r.Ended
	tried := e.Compressions + e.Failures
	add("memory", "≥ 80%", "", false, false)
	add("disk", "< 5 GB", i18n.Bytes(lately.Ended.Bytes), lately.Ended.Bytes < goalDisk, true)
	add("failed", "< 5%", exact(e.Failed, e.Tasks), e.Failed*100 < goalFailed*e.Tasks, e.Tasks > 0)
	add("summaries", "> 95%", exact(e.Compressions, tried), e.Compressions*100 > goalSummaries*tried, tried > 0)
	add("time", "< +10%", "", false, false)
	add("kept", "≥ 90%", "", false, false)
	return all, nil
}

// PrintGoals prints what Goals found, and reports whether one is missed.
func PrintGoals(w io.Writer, all []Goal, asJSON bool, l i18n.Lang) (missed bool, err error) {
	p := &printer{w: w}
	for _, g := range all {
		missed = missed || g.State == "missed"
		if asJSON {
			p.line(g)
			continue
		}
		p.printf("%s %s %s %s\n    %s\n", pad(l.T("stats.goal_"+g.Name), 30), pad(g.Wants, 8), pad(cmp.Or(g.Is, "-"), 10), l.T("stats.goal_"+g.State), g.How)
	}
	return missed, p.err
}
