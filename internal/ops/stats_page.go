package ops

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

//go:embed stats_page.css
var statsCSS string

// pageTop is how many of each kind the page shows, longReason how many characters of a reason.
const (
	pageTop    = 20
	longReason = 200
)

// statsChart is a section of the page: columns by day or week over a table, or a table whose rows
// have bars.
type statsChart struct {
	Title, Note, Said string
	Bars              []statsBar // none: Shares of the rows
	Width             int        // of the plot; its height is 100
	First, Most, Last string
	Legend            []statsPart
	Head              []statsHead
	Rows              []statsRow
	Shares            bool
	Class             string
}

type statsBar struct {
	Title string
	Parts []statsPart
}

type statsPart struct {
	Class, Name string
	X           int
	Y, H        string
}

type statsHead struct {
	Name   string
	Number bool
}

type statsRow struct {
	Cells []string
	Share string // of 100
}

type statsFact struct{ Name, Value string }

// StatsPage is the report as one page of HTML that loads nothing and runs nothing: what strangers
// said stands in it as text, without secrets.
func StatsPage(ctx context.Context, base string, r StatsReport, o StatsOptions, redact func(string) string) ([]byte, error) {
	ends, err := contextstore.SumEnds(ctx, base, o.Viewer, o.StatsFilter)
	if err != nil {
		return nil, err
	}
	p := statsPager{r: r, o: o, text: func(s string) string { return cmp.Or(clean(redact(s)), "-") }}
	var b htmlWriter
	p.page(&b, []statsChart{p.runs(), p.cost(), p.success(), p.durations(ends), p.failures(ends), p.models(), p.parts("page_repos", r.Repos), p.parts("page_users", r.Users)})
	return b.Bytes(), nil
}

// htmlWriter writes markup and texts, which it escapes. html/template would do so by itself, and
// costs every verb 0.4 MiB of memory.
type htmlWriter struct{ bytes.Buffer }

// put writes markup; in the place of each %s is a text, also within quotes.
func (w *htmlWriter) put(markup string, texts ...string) {
	for i, piece := range strings.Split(markup, "%s") {
		if i > 0 {
			w.WriteString(html.EscapeString(texts[i-1]))
		}
		w.WriteString(piece)
	}
}

const statsPageHead = `<!doctype html>
<html lang="%s"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>%s</title>
<style>
`

// page writes the whole of it.
func (p statsPager) page(w *htmlWriter, charts []statsChart) {
	title := p.say("title")
	w.put(statsPageHead, string(p.o.Lang), title)
	w.WriteString(statsCSS)
	w.put("</style></head><body>\n<h1>%s</h1>\n<p class=\"soft\">%s</p>\n", title, p.say("page_made", p.o.Now.UTC().Format("2006-01-02 15:04")))
	for _, s := range p.chosen() {
		w.put("<p class=\"soft\">%s</p>\n", s)
	}
	w.put("<dl>")
	for _, f := range p.facts() {
		w.put("<div><dt>%s</dt><dd>%s</dd></div>", f.Name, f.Value)
	}
	w.put("</dl>\n")
	for _, c := range charts {
		w.put("<section><h2>%s</h2>\n", c.Title)
		if c.Note != "" {
			w.put("<p class=\"soft\">%s</p>\n", c.Note)
		}
		switch {
		case len(c.Rows) == 0:
			w.put("<p>%s</p>\n", p.say("page_none"))
		case len(c.Bars) > 0:
			c.plot(w)
			w.put("<details><summary>%s</summary>", p.say("page_table"))
			c.table(w)
			w.put("</details>\n")
		default:
			c.table(w)
		}
		w.put("</section>\n")
	}
	w.put("</body></html>\n")
}

// plot draws the columns. What is written about them stands outside, to be read on a phone as well.
func (c statsChart) plot(w *htmlWriter) {
	w.put(`<figure><svg class="plot" viewBox="0 0 %s 100" preserveAspectRatio="none" role="img" aria-label="%s">`, strconv.Itoa(c.Width), c.Said)
	for _, b := range c.Bars {
		w.put("<g><title>%s</title>", b.Title)
		for _, r := range b.Parts {
			w.put(`<rect class="%s" x="%s" y="%s" width="8" height="%s"/>`, r.Class, strconv.Itoa(r.X), r.Y, r.H)
		}
		w.put("</g>")
	}
	w.put("</svg>\n<figcaption><div class=\"ends\"><span>%s</span><span>%s</span><span>%s</span></div>", c.First, c.Most, c.Last)
	for _, l := range c.Legend {
		w.put(`<span><svg class="key" viewBox="0 0 8 8" aria-hidden="true"><rect class="%s" width="8" height="8"/></svg>%s</span> `, l.Class, l.Name)
	}
	w.put("</figcaption></figure>\n")
}

func (c statsChart) table(w *htmlWriter) {
	class := func(i int) string {
		if c.Head[i].Number {
			return "n"
		}
		return "t"
	}
	w.put(`<div class="scroll"><table><thead><tr>`)
	for i, h := range c.Head {
		w.put(`<th scope="col" class="%s">%s</th>`, class(i), h.Name)
	}
	if c.Shares {
		w.put("<td></td>")
	}
	w.put("</tr></thead><tbody>\n")
	for _, r := range c.Rows {
		w.put(`<tr><th scope="row">%s</th>`, r.Cells[0])
		for i, cell := range r.Cells[1:] {
			w.put(`<td class="%s">%s</td>`, class(i+1), cell)
		}
		if c.Shares {
			w.put(`<td class="w"><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="%s" width="%s" height="8"/></svg></td>`, c.Class, r.Share)
		}
		w.put("</tr>\n")
	}
	w.put("</tbody></table></div>\n")
}

// WriteStatsPage writes a page to a file, whole or not at all. What is there must be a plain file.
func WriteStatsPage(fs *disk.FS, path string, page []byte) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return i18n.E("stats.page_file", path)
	}
	return fs.Replace(path, page, true)
}

type statsPager struct {
	r    StatsReport
	o    StatsOptions
	text func(string) string
}

func (p statsPager) say(key string, args ...any) string { return p.o.Lang.T("stats."+key, args...) }

// chosen says what the page is of.
func (p statsPager) chosen() (all []string) {
	f := p.o.StatsFilter
	for _, c := range [][2]string{{"--user", f.User}, {"--status", string(f.Status)}, {"--repo", f.Repo}, {"--model", f.Model}, {"--from", f.From}, {"--to", f.To}} {
		if c[1] != "" {
			all = append(all, c[0]+" "+p.text(c[1]))
		}
	}
	return all
}

func (p statsPager) facts() []statsFact {
	e := p.r.Ended
	all := []statsFact{{p.say("page_runs"), thousands(p.r.Total)}, {p.say("page_live"), thousands(p.r.Running)},
		{p.say("page_success"), rate(e.Done, e.Failed)}, {p.say("page_mean"), p.r.duration(p.o.Lang)},
		{p.say("page_tokens"), thousands(e.Tokens)}, {p.say("page_cost"), contextstore.Dollars(e.CostMicroUSD)}}
	if d := p.r.Disk; d != nil {
		all = append(all, statsFact{p.say("page_disk"), i18n.Bytes(d.Running + d.Ended)})
	}
	return all
}

// rate is the share of the runs that completed in those that completed or failed.
func rate(done, failed int64) string {
	if done+failed == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(done)/float64(done+failed), 'f', 1, 64) + "%"
}

// columns fills a chart with a column for each span of time; values are those of its parts, from
// below. full is what a column of full height stands for, 0 for the highest.
func (c *statsChart) columns(spans []part, full float64, classes []string, values func(part) []float64, label func(float64) string) {
	most := 0.0
	for _, d := range spans {
		sum := 0.0
		for _, v := range values(d) {
			sum += v
		}
		most = max(most, sum)
	}
	if len(spans) == 0 {
		return
	}
	c.Width, c.First, c.Last, c.Most = 10*len(spans)-2, spans[0].Name, spans[len(spans)-1].Name, label(most)
	for i, d := range spans {
		bar, from := statsBar{Title: d.Name}, 100.0
		for n, v := range values(d) {
			if v > 0 {
				h := 100 * v / cmp.Or(full, most)
				from -= h
				bar.Parts = append(bar.Parts, statsPart{Class: classes[n], X: 10 * i, Y: decimal(from), H: decimal(h)})
			}
		}
		c.Bars = append(c.Bars, bar)
	}
	c.Said = fmt.Sprintf("%s: %s – %s, %s", c.Title, c.First, c.Last, c.Most)
}

// decimal is a number of an SVG.
func decimal(f float64) string { return strconv.FormatFloat(math.Round(100*f)/100, 'f', -1, 64) }

// rows adds a row for each span in which something was, the latest first.
func (c *statsChart) rows(spans []part, cells func(part) []string) {
	for _, d := range slices.Backward(spans) {
		if d.Tasks > 0 {
			c.Rows = append(c.Rows, statsRow{Cells: append([]string{d.Name}, cells(d)...)})
		}
	}
}

// days are the days of the report without gaps, as many as it tells.
func (p statsPager) days() (all []part) {
	for _, d := range p.r.Days {
		at, err := time.Parse(time.DateOnly, d.Name)
		if err != nil {
			continue
		}
		for n := len(all); n > 0 && n < statsDays; n = len(all) {
			last, _ := time.Parse(time.DateOnly, all[n-1].Name)
			if last = last.AddDate(0, 0, 1); !last.Before(at) {
				break
			}
			all = append(all, part{Name: last.Format(time.DateOnly)})
		}
		all = append(all, d)
	}
	return all
}

// weeks are the days by week, named by its Monday.
func (p statsPager) weeks() (all []part) {
	for _, d := range p.days() {
		at, _ := time.Parse(time.DateOnly, d.Name)
		monday := at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format(time.DateOnly)
		if n := len(all); n == 0 || all[n-1].Name != monday {
			all = append(all, part{Name: monday})
		}
		w := &all[len(all)-1]
		w.Plus(d.Totals)
		w.Done, w.Failed = w.Done+d.Done, w.Failed+d.Failed
	}
	return all
}

func (p statsPager) head(first string, numbers ...string) []statsHead {
	all := []statsHead{{Name: p.say(first)}}
	for _, n := range numbers {
		all = append(all, statsHead{p.say(n), true})
	}
	return all
}

func (p statsPager) runs() statsChart {
	c := statsChart{Title: p.say("page_by_day"), Note: p.say("page_days", statsDays), Head: p.head("page_day", "page_completed", "page_stopped", "page_failed")}
	classes, names := []string{"s0", "s1", "s2"}, []string{"page_completed", "page_stopped", "page_failed"}
	for i, n := range names {
		c.Legend = append(c.Legend, statsPart{Class: classes[i], Name: p.say(n)})
	}
	stopped := func(d part) int64 { return d.Tasks - d.Done - d.Failed }
	c.columns(p.days(), 0, classes, func(d part) []float64 { return []float64{float64(d.Done), float64(stopped(d)), float64(d.Failed)} },
		func(most float64) string { return p.say("page_most", thousands(int64(most))) })
	c.rows(p.days(), func(d part) []string { return []string{thousands(d.Done), thousands(stopped(d)), thousands(d.Failed)} })
	return c
}

func (p statsPager) cost() statsChart {
	c := statsChart{Title: p.say("page_cost_day"), Head: p.head("page_day", "page_cost", "page_tokens")}
	if n := p.r.Ended.UnpricedCalls; n > 0 {
		c.Note = p.say("page_unpriced", thousands(n))
	}
	c.columns(p.days(), 0, []string{"s0"}, func(d part) []float64 { return []float64{float64(d.CostMicroUSD)} },
		func(most float64) string { return p.say("page_most", contextstore.Dollars(int64(most))) })
	c.rows(p.days(), func(d part) []string { return []string{contextstore.Dollars(d.CostMicroUSD), thousands(d.Tokens)} })
	return c
}

func (p statsPager) success() statsChart {
	c := statsChart{Title: p.say("page_success"), Note: p.say("page_success_is"), Head: p.head("page_week", "page_success", "page_completed", "page_failed")}
	share := func(d part) float64 { return 100 * float64(d.Done) / float64(max(d.Done+d.Failed, 1)) }
	c.columns(p.weeks(), 100, []string{"s0"}, func(d part) []float64 { return []float64{share(d)} },
		func(most float64) string { return p.say("page_most", decimal(math.Round(10*most)/10)+"%") })
	c.rows(p.weeks(), func(d part) []string { return []string{rate(d.Done, d.Failed), thousands(d.Done), thousands(d.Failed)} })
	return c
}

// shared fills a table whose rows have bars.
func (c *statsChart) shared(cells []string, n, most int64) {
	c.Shares, c.Class = true, cmp.Or(c.Class, "s0")
	c.Rows = append(c.Rows, statsRow{cells, decimal(100 * float64(n) / float64(max(most, 1)))})
}

func (p statsPager) durations(e contextstore.Ends) statsChart {
	c := statsChart{Title: p.say("page_durations"), Head: p.head("page_duration", "page_runs", "page_share")}
	all, most, bounds := int64(0), slices.Max(e.Durations), index.DurationBounds()
	for _, n := range e.Durations {
		all += n
	}
	for i, n := range e.Durations {
		var name string
		switch {
		case i == 0:
			name = p.say("page_below", duration(p.o.Lang, bounds[0]))
		case i == len(bounds):
			name = p.say("page_above", duration(p.o.Lang, bounds[i-1]))
		default:
			name = duration(p.o.Lang, bounds[i-1]) + " – " + duration(p.o.Lang, bounds[i])
		}
		if all > 0 {
			c.shared([]string{name, thousands(n), percent(n, all)}, n, most)
		}
	}
	return c
}

// varying is what differs between two texts of one reason: numbers, and names of runs and commits.
const varying = `\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{7,40}\b|[0-9]+`

func (p statsPager) failures(e contextstore.Ends) statsChart {
	c := statsChart{Title: p.say("page_failures"), Class: "s2", Head: append(p.head("page_reason", "page_runs", "page_share"), statsHead{Name: p.say("page_latest")})}
	same, at := regexp.MustCompile(varying), map[string]int{}
	var all []contextstore.Failure
	for _, f := range e.Failures {
		reason, _, _ := strings.Cut(strings.TrimSpace(f.Reason), "\n")
		f.Reason = cmp.Or(reason, p.say("page_no_reason"))
		k := same.ReplaceAllString(f.Reason, "#")
		i, ok := at[k]
		if !ok {
			at[k] = len(all)
			all = append(all, f)
			continue
		}
		if all[i].Tasks += f.Tasks; f.At.After(all[i].At.Time) {
			all[i].Reason, all[i].UUID, all[i].At = f.Reason, f.UUID, f.At
		}
	}
	slices.SortStableFunc(all, func(a, b contextstore.Failure) int { return cmp.Compare(b.Tasks, a.Tasks) })
	total, others := e.Others, e.Others
	for i, f := range all {
		if total += f.Tasks; i >= pageTop {
			others += f.Tasks
		}
	}
	for _, f := range all[:min(len(all), pageTop)] {
		latest := contextstore.Short(f.UUID)
		if !f.At.IsZero() {
			latest = f.At.UTC().Format(time.DateOnly) + " " + latest
		}
		c.shared([]string{fit(p.text(f.Reason), longReason), thousands(f.Tasks), percent(f.Tasks, total), latest}, f.Tasks, all[0].Tasks)
	}
	if others > 0 {
		c.shared([]string{p.say("page_others"), thousands(others), percent(others, total), ""}, others, all[0].Tasks)
	}
	return c
}

func (p statsPager) models() statsChart {
	c := statsChart{Title: p.say("page_models"), Head: p.head("page_model", "page_tokens", "page_runs", "page_success", "page_cost")}
	all := slices.SortedStableFunc(slices.Values(p.r.Models), func(a, b part) int { return cmp.Compare(b.Tokens, a.Tokens) })
	for _, m := range all[:min(len(all), pageTop)] {
		c.shared([]string{p.text(m.Name), thousands(m.Tokens), thousands(m.Tasks), rate(m.Done, m.Failed), contextstore.Dollars(m.CostMicroUSD)}, m.Tokens, all[0].Tokens)
	}
	c.more(p, len(all))
	return c
}

func (p statsPager) parts(title string, all []part) statsChart {
	c := statsChart{Title: p.say(title), Head: p.head("page_name", "page_runs", "page_success", "page_tokens", "page_cost")}
	for _, m := range all[:min(len(all), pageTop)] {
		c.shared([]string{p.text(m.Name), thousands(m.Tasks), rate(m.Done, m.Failed), thousands(m.Tokens), contextstore.Dollars(m.CostMicroUSD)}, m.Tasks, all[0].Tasks)
	}
	c.more(p, len(all))
	return c
}

// more says how many are not shown.
func (c *statsChart) more(p statsPager, n int) {
	if n > pageTop {
		c.Note = strings.TrimSpace(p.say("others", n-pageTop))
	}
}
