package ops

import (
	"cmp"
	"context"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// StatsOptions say which runs are summed up, and how that is printed.
type StatsOptions struct {
	contextstore.StatsFilter
	JSON, CSV bool
	Lang      i18n.Lang
	Now       time.Time
	Viewer    contextstore.Viewer
}

// statsDays is how many of the last days are told one by one.
const statsDays = 92

// statsTop is how many of each kind the report for people shows.
const statsTop = 10

// Check reports what of the options cannot be.
func (o StatsOptions) Check() error {
	return cmp.Or(checkStatus(o.Status), checkDays(o.From, o.To))
}

// checkStatus reports a status that is none.
func checkStatus(status task.Status) error {
	if status == "" || status.Valid() {
		return nil
	}
	var names []string
	for _, s := range task.Statuses() {
		names = append(names, string(s))
	}
	return i18n.E("ops.bad_status", string(status), strings.Join(names, ", "))
}

// checkDays reports days that are none, or the wrong way round.
func checkDays(from, to string) error {
	for _, d := range [][2]string{{"--from", from}, {"--to", to}} {
		if _, err := time.Parse(time.DateOnly, d[1]); err != nil && d[1] != "" {
			return i18n.E("stats.bad_day", d[0], d[1])
		}
	}
	if from != "" && to != "" && from > to {
		return i18n.E("stats.no_days", from, to)
	}
	return nil
}

// part is what the runs took that have a name in common.
type part struct {
	Name   string `json:"name"`
	Failed int64  `json:"failed"`
	Done   int64  `json:"completed"`
	contextstore.Totals
}

// diskUse is what the files of runs take.
type diskUse struct {
	Running      int64 `json:"running_bytes"`
	RunningWhole bool  `json:"running_whole"`   // false: more lies there than was looked at
	Logs         int64 `json:"ended_log_bytes"` // of what ended, before compression
	Ended        int64 `json:"ended_bytes"`     // on the disk
	Measured     int64 `json:"ended_measured"`  // of so many; the rest is estimated by them
	Whole        bool  `json:"ended_whole"`     // false: Ended is an estimate
}

// StatsReport is what tori stats tells.
type StatsReport struct {
	Filter   contextstore.StatsFilter `json:"-"`
	Total    int64                    `json:"total"`
	Running  int64                    `json:"running"` // has not ended
	Ended    part                     `json:"ended"`
	Disk     *diskUse                 `json:"disk"` // null where runs are chosen: it is of the whole directory
	Statuses []part                   `json:"statuses"`
	Users    []part                   `json:"users"`
	Models   []part                   `json:"models"`
	Repos    []part                   `json:"repositories"`
	Days     []part                   `json:"days"` // the last of them, in order
	Scanned  bool                     `json:"-"`
}

// ReadStats sums up the runs below base.
func ReadStats(ctx context.Context, base string, o StatsOptions) (r StatsReport, err error) {
	if err := o.Check(); err != nil {
		return r, err
	}
	last := o.Now.UTC()
	if to, err := time.Parse(time.DateOnly, o.To); err == nil && to.Before(last) {
		last = to
	}
	s, scanned, err := contextstore.Sum(ctx, base, o.Viewer, o.StatsFilter, last.AddDate(0, 0, 1-statsDays).Format(time.DateOnly))
	if err != nil {
		return r, err
	}
	r = StatsReport{Filter: o.StatsFilter, Scanned: scanned, Statuses: parts(s.Statuses), Users: parts(s.Users), Models: parts(s.Models), Repos: parts(s.Repos), Days: parts(s.Days)}
	slices.SortFunc(r.Days, func(a, b part) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range r.Statuses {
		r.Total += p.Tasks
		if !task.Status(p.Name).Final() {
			r.Running += p.Tasks
			continue
		}
		r.Ended.Plus(p.Totals)
		r.Ended.Done += p.Done
		r.Ended.Failed += p.Failed
	}
	if o.StatsFilter == (contextstore.StatsFilter{}) {
		r.Disk, err = measure(base, o.Viewer, r.Ended)
	}
	return r, err
}

// measure looks at the disk. What it does not look at is taken to be like the rest.
func measure(base string, who contextstore.Viewer, ended part) (d *diskUse, err error) {
	d = &diskUse{Logs: ended.Bytes}
	if d.Running, _, d.RunningWhole, err = contextstore.DiskUse(base, contextstore.LiveDirs(), who); err != nil {
		return nil, err
	}
	if d.Ended, d.Measured, d.Whole, err = contextstore.DiskUse(base, []string{contextstore.DirCompleted}, who); err != nil {
		return nil, err
	}
	if !d.Whole && d.Measured > 0 {
		d.Ended = int64(float64(d.Ended) / float64(d.Measured) * float64(ended.Tasks))
	}
	return d, nil
}

// parts joins the groups of a name, the largest first.
func parts(all []contextstore.Group) []part {
	out, at := []part{}, map[string]int{}
	for _, g := range all {
		i, ok := at[g.Name]
		if !ok {
			i = len(out)
			at[g.Name] = i
			out = append(out, part{Name: g.Name})
		}
		out[i].Plus(g.Totals)
		switch g.Status {
		case task.Failed:
			out[i].Failed += g.Tasks
		case task.Completed:
			out[i].Done += g.Tasks
		}
	}
	slices.SortFunc(out, func(a, b part) int { return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Name, b.Name)) })
	return out
}

// PrintStats prints the report of store-v2 §9.2.
func PrintStats(w io.Writer, r StatsReport, o StatsOptions) error {
	p := &printer{w: w}
	switch {
	case o.JSON:
		p.json(r)
	case o.CSV:
		return r.csv(p)
	default:
		r.text(p, o.Lang)
	}
	return p.err
}

func (r StatsReport) text(p *printer, l i18n.Lang) {
	say := func(key string, args ...any) { p.printf("%s\n", l.T("stats."+key, args...)) }
	title := l.T("stats.title")
	p.printf("%s\n%s\n\n", title, strings.Repeat("=", columns(title)))
	say("total", thousands(r.Total))
	say("running", thousands(r.Running))
	say("ended", thousands(r.Ended.Tasks))
	if d := r.Disk; d != nil {
		p.printf("\n")
		say("disk")
		if d.RunningWhole {
			say("disk_running", i18n.Bytes(d.Running))
		} else {
			say("disk_running_more", i18n.Bytes(d.Running))
		}
		switch {
		case d.Whole:
			say("disk_ended", i18n.Bytes(d.Logs), i18n.Bytes(d.Ended))
		default:
			say("disk_ended_about", i18n.Bytes(d.Logs), i18n.Bytes(d.Ended), thousands(d.Measured))
		}
	}
	p.printf("\n")
	e := r.Ended
	if e.Tasks == 0 {
		say("no_average")
	} else {
		mean := func(n int64) string { return thousands(int64(math.Round(float64(n) / float64(e.Tasks)))) }
		tenth := func(n int64) string { return strconv.FormatFloat(float64(n)/float64(e.Tasks), 'f', 1, 64) }
		say("average")
		say("messages", mean(e.Messages))
		say("tokens", mean(e.Tokens))
		say("duration", r.duration(l))
		say("compressions", tenth(e.Compressions))
		say("calls", tenth(e.LLMCalls), tenth(e.ToolCalls))
		say("cost", contextstore.Dollars(e.CostMicroUSD/e.Tasks), contextstore.Dollars(e.CostMicroUSD))
		if e.UnpricedCalls > 0 {
			say("unpriced", thousands(e.UnpricedCalls))
		}
	}
	r.list(p, l, "by_user", r.Users, r.Total)
	r.list(p, l, "by_status", r.Statuses, r.Total)
	r.list(p, l, "by_model", r.Models, r.Total)
	r.list(p, l, "by_repo", r.Repos, r.Total)
	days := slices.Clone(r.Days)
	slices.Reverse(days)
	r.list(p, l, "by_day", days, r.Ended.Tasks)
	if r.Scanned && r.Total > manyScanned {
		p.printf("\n%s\n", l.T("ops.scanned"))
	}
}

// duration is the mean of those that have a start and an end.
func (r StatsReport) duration(l i18n.Lang) string {
	return duration(l, time.Duration(r.Ended.DurationMS/max(r.Ended.Timed, 1))*time.Millisecond)
}

func (r StatsReport) list(p *printer, l i18n.Lang, head string, all []part, of int64) {
	if len(all) == 0 {
		return
	}
	p.printf("\n%s\n", l.T("stats."+head))
	for _, g := range all[:min(len(all), statsTop)] {
		key := "stats.group"
		if g.CostMicroUSD > 0 {
			key = "stats.group_cost"
		}
		p.printf("%s\n", l.T(key, cmp.Or(clean(g.Name), "-"), thousands(g.Tasks), percent(g.Tasks, of), thousands(g.Tokens), contextstore.Dollars(g.CostMicroUSD)))
	}
	if more := len(all) - statsTop; more > 0 {
		p.printf("%s\n", l.T("stats.others", more))
	}
}

// percent is a share as the seed prints it.
func percent(n, of int64) string {
	return strconv.FormatInt(int64(math.Round(100*float64(n)/float64(max(of, 1)))), 10) + "%"
}

// csv prints a line for each user, status, model, repository and day.
func (r StatsReport) csv(p *printer) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	err := w.Write([]string{"by", "name", "tasks", "completed", "failed", "messages", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "duration_ms",
		"compressions", "compression_failures", "llm_calls", "tool_calls", "cost_micro_usd", "unpriced_calls", "bytes"})
	for _, list := range []struct {
		by  string
		all []part
	}{{"status", r.Statuses}, {"user", r.Users}, {"model", r.Models}, {"repository", r.Repos}, {"day", r.Days}} {
		for _, g := range list.all {
			line := []string{list.by, cell(g.Name)}
			for _, n := range []int64{g.Tasks, g.Done, g.Failed, g.Messages, g.Tokens, g.PromptTokens, g.CachedTokens, g.CompletionTokens, g.DurationMS,
				g.Compressions, g.Failures, g.LLMCalls, g.ToolCalls, g.CostMicroUSD, g.UnpricedCalls, g.Bytes} {
				line = append(line, strconv.FormatInt(n, 10))
			}
			err = cmp.Or(err, w.Write(line))
		}
	}
	w.Flush()
	p.raw(b.String())
	return cmp.Or(err, p.err)
}

// cell is a stranger's text that no spreadsheet takes for a formula.
func cell(s string) string {
	if s = clean(s); s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}
