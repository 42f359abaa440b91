package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"toritsugi/internal/memory"
)

// results is everything that was measured; the report is made of it alone.
type results struct {
	disk    string // where, and which file system
	syncs   []time.Duration
	start   pair           // runs without a turn
	turns   []int          // ascending
	pairs   map[int]pair   // by turns
	small   []pair         // with a window that is full, by smallTurns
	planned map[int]sample // by turns: tori led by a plan
	boxed   sample         // in the sandbox; nil where there is none
	hello   []sample       // tori version

	llm    map[string]sample // by vendor
	ledger map[string]sample // by part

	workspace []sample // by treeShapes
	dispatch  map[string]sample
	chat      sample
	databases *databases
	tokens    map[string]memory.TokenUsage // of the pairs, by case and mode
}

// pair is the floor's and tori's medians of one plan.
type pair struct{ floor, tori sample }

// The budgets (docs: DESIGN §9).
const (
	maxSyncs     = 2.0  // per turn
	maxRows      = 1.0  // per turn
	ownAllowance = 1.0  // ms per turn above the floor and the syncs
	maxCPURatio  = 2.5  // to the floor, 100 turns
	maxGrowth    = 1.1  // of memory, turn 1,000 to turn 100, window full
	maxPeak      = 40.0 // MiB
	maxFileRatio = 2.5
	maxHello     = 20.0 // ms
	maxHelloPeak = 25.0 // MiB
	flatWithin   = 0.25 // ms by which a late turn may seem dearer than an early one
)

// What a checkpoint costs: how often there is one, in ms, and its syncs at the
// most, of three logs, state.json and the copy of that.
const (
	checkpointEvery = 30_000
	checkpointSyncs = 5
	summarySyncs    = 4 // the summary, state.json, the copy of that, and the decision
)

// report prints figures, budgets and verdicts.
type report struct {
	w    io.Writer
	over int
}

const labelWidth = 46

// row prints a line: a label, a figure per column, and what there is to say of
// it.
func (r *report) row(label string, format string, cells []float64, note string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s", labelWidth, label)
	for _, c := range cells {
		text := "-"
		if !math.IsNaN(c) {
			text = fmt.Sprintf(format, c)
		}
		fmt.Fprintf(&b, "%12s", text)
	}
	_, _ = fmt.Fprintln(r.w, strings.TrimRight(b.String()+"  "+note, " "))
}

func (r *report) title(text string, columns ...string) {
	_, _ = fmt.Fprintf(r.w, "\n%-*s", labelWidth, text)
	for _, c := range columns {
		_, _ = fmt.Fprintf(r.w, "%12s", c)
	}
	_, _ = fmt.Fprintln(r.w)
}

// columns are what each number of turns has, by formats of that number.
func columns(turns []int, formats ...string) (all []string) {
	for _, n := range turns {
		for _, f := range formats {
			all = append(all, fmt.Sprintf(f, n))
		}
	}
	return all
}

// verdict judges figures by a limit; a figure that rounds to it is within.
func (r *report) verdict(limit float64, unit string, figures ...float64) string {
	for _, f := range figures {
		if f > limit*1.005 {
			r.over++
			return fmt.Sprintf("≤ %.4g%s  OVER", limit, unit)
		}
	}
	return fmt.Sprintf("≤ %.4g%s  ok", limit, unit)
}

func (r *report) print(v *results) {
	sync := math.NaN()
	if len(v.syncs) > 0 {
		sync = v.syncMedian()
		_, _ = fmt.Fprintf(r.w, "Disk: %s; one fdatasync after an append of 1.5 KB: median %.3f ms (p95 %.3f, of %d)\n",
			v.disk, sync, quantile(inMS(v.syncs), 0.95), len(v.syncs))
	}
	if len(v.turns) > 0 && v.start.tori != nil {
		r.perTurn(v, sync)
		r.whole(v)
		r.ledByPlan(v)
	}
	if len(v.small) == len(smallTurns) {
		r.window(v)
	}
	if v.boxed != nil {
		b := v.boxed
		r.title("In the sandbox", fmt.Sprintf("%d turns", boxedTurns))
		r.row("overhead per turn, tool included, ms", "%.2f", []float64{b[overhead]}, "")
		r.row("tool time per turn, ms", "%.2f", []float64{b[tool]}, "")
		r.row("own time per turn, tool excluded, ms", "%.2f", []float64{b[own]}, "")
	}
	if len(v.hello) > 0 {
		walls, peaks := column(v.hello, wall), column(v.hello, peak)
		r.title("tori version", "best", "median", "worst")
		r.row("wall time, ms", "%.1f", []float64{quantile(walls, 0), median(walls), quantile(walls, 1)}, r.verdict(maxHello, " ms", median(walls)))
		r.row("peak memory, MiB", "%.1f", []float64{quantile(peaks, 0), median(peaks), quantile(peaks, 1)}, r.verdict(maxHelloPeak, " MiB", median(peaks)))
	}
	r.tokens(v.tokens)
	r.llm(v.llm)
	r.workspace(v.workspace)
	r.dispatch(v.dispatch)
	r.chat(v.chat)
	r.databases(v.databases)
	r.ledger(v.ledger)
	_, _ = fmt.Fprintf(r.w, "\n%d of the budgets are exceeded.\n", r.over)
}

// both lists a figure of floor and tori for every number of turns.
func (v *results) both(figure func(sample, int) float64) []float64 {
	var all []float64
	for _, n := range v.turns {
		all = append(all, figure(v.pairs[n].floor, n), figure(v.pairs[n].tori, n))
	}
	return all
}

// of is a figure by its name, NaN where the sample does not have it.
func of(name string) func(sample, int) float64 {
	return func(s sample, _ int) float64 {
		if f, ok := s[name]; ok {
			return f
		}
		return math.NaN()
	}
}

// perTurn is what a turn adds to a run without one.
func (v *results) perTurn(name string) (cells, toris []float64) {
	for _, n := range v.turns {
		for _, side := range []struct{ run, start sample }{{v.pairs[n].floor, v.start.floor}, {v.pairs[n].tori, v.start.tori}} {
			f := math.NaN()
			if _, ok := side.run[name]; ok {
				f = max(0, side.run[name]-side.start[name]) / float64(n)
			}
			cells = append(cells, f)
		}
		toris = append(toris, cells[len(cells)-1])
	}
	return cells, toris
}

func (r *report) perTurn(v *results, sync float64) {
	r.title("Per turn (turns of the run above)", columns(v.turns, "floor %d", "tori %d")...)
	cells, toris := v.perTurn(syncs)
	r.row("fdatasync", "%.2f", cells, r.syncVerdict(v, toris))
	cells, toris = v.perTurn(rows)
	r.row("row updates", "%.2f", cells, r.verdict(maxRows, "", toris...))
	r.row("overhead, tool included: median, ms", "%.2f", v.both(of(overhead)), "")
	r.row("overhead, tool included: p95, ms", "%.2f", v.both(of(p95)), "")
	r.row("tool: mean, ms", "%.2f", v.both(of(tool)), "")
	for _, kind := range []struct{ label, name string }{
		{"own time: median overhead − tool, ms", own},
		{"own time in the last tenth, ms", ownLast},
		{"own time: mean, ms", ownMean},
	} {
		note := ""
		if kind.name != ownMean {
			note = r.aboveFloor(v, kind.name, sync)
		}
		r.row(kind.label, "%.2f", v.both(of(kind.name)), note)
	}
	r.row("own time of turns 6 to 15, ms", "%.2f", v.both(of(ownTenth)), "")
	r.row("  above the floor, last tenth, ms", "%.2f", v.both(func(s sample, n int) float64 {
		if _, ok := s[syncs]; !ok {
			return math.NaN()
		}
		return v.pairs[n].above(ownLast)
	}), r.flat(v))
	cells, _ = v.perTurn(cpu)
	r.row("own CPU, start excluded, ms", "%.2f", cells, "")
	cells, _ = v.perTurn(appended)
	r.row("bytes appended and replaced", "%.0f", cells, "")
	cells, _ = v.perTurn(written)
	r.row("bytes to the disk (kernel, by block)", "%.0f", cells, "")
}

// syncVerdict judges syncs per turn. Those of checkpoints are not the turns'; one
// sync, the copy of what the claim wrote, is of every run that lasts as long as
// a turn.
func (r *report) syncVerdict(v *results, each []float64) string {
	turns := make([]float64, len(each))
	for i, n := range v.turns {
		turns[i] = each[i] - checkpoints(v.pairs[n].tori)/float64(n)
	}
	return r.verdict(maxSyncs, ", without checkpoints", turns...)
}

// checkpoints are the syncs of a run that are not its turns'.
func checkpoints(run sample) float64 {
	return 1 + checkpointSyncs*math.Floor(run[wall]/checkpointEvery)
}

// aboveFloor judges tori's own time by the floor's and the measured sync.
func (r *report) aboveFloor(v *results, name string, sync float64) string {
	allowed := ownAllowance + maxSyncs*sync
	for _, n := range v.turns {
		if v.pairs[n].tori[name] > v.pairs[n].floor[name]+allowed {
			r.over++
			return fmt.Sprintf("≤ floor + %.2f ms  OVER at %d", allowed, n)
		}
	}
	return fmt.Sprintf("≤ floor + %.2f ms  ok", allowed)
}

// flat judges whether a turn at the end of the longest run costs more than its
// tenth; what the longer request itself costs is the floor's too. Both are of one
// run: the mean time in the tool is taken off each turn, and in a run of ten turns
// the first call, which starts the shell's helper, makes a third of that mean.
func (r *report) flat(v *results) string {
	last := v.turns[len(v.turns)-1]
	p := v.pairs[last]
	if last <= 10 {
		return ""
	}
	grown := p.above(ownLast) - p.above(ownTenth)
	if grown > flatWithin {
		r.over++
		return fmt.Sprintf("same at %d as at 10  OVER by %.2f ms", last, grown)
	}
	return fmt.Sprintf("same at %d as at 10  ok", last)
}

// above is what tori's turns take longer than the floor's, by the name of a figure.
func (p pair) above(name string) float64 { return p.tori[name] - p.floor[name] }

func (r *report) whole(v *results) {
	r.title("Whole run", columns(v.turns, "floor %d", "tori %d")...)
	r.row("wall time, ms", "%.0f", v.both(of(wall)), "")
	r.row("own CPU, ms", "%.0f", v.both(of(cpu)), "")
	ratio := v.both(func(s sample, n int) float64 {
		if _, ok := s[syncs]; !ok {
			return 1
		}
		return s[cpu] / v.pairs[n].floor[cpu]
	})
	note := ""
	if p, ok := v.pairs[100]; ok {
		note = r.verdict(maxCPURatio, " at 100", p.tori[cpu]/p.floor[cpu])
	}
	r.row("own CPU, × floor", "%.2f", ratio, note)
	var peaks, ratios []float64
	intact := "100 %  ok"
	for _, n := range v.turns {
		t := v.pairs[n].tori
		peaks, ratios = append(peaks, t[peak]), append(ratios, t[fileRatio])
		if t[breaks] > t[events] && intact == "100 %  ok" {
			r.over++
			intact = fmt.Sprintf("100 %%  OVER at %d", n)
		}
	}
	r.row("peak memory, MiB", "%.1f", v.both(of(peak)), r.verdict(maxPeak, " MiB", peaks...))
	r.row("longest request, MiB", "%.2f", v.both(of(body)), "")
	r.row("requests that begin with the one before, %", "%.1f", v.both(func(s sample, _ int) float64 { return 100 * s[kept] }), intact)
	r.row("file bytes per byte of conversation", "%.2f", v.both(of(fileRatio)), r.verdict(maxFileRatio, "", ratios...))
	s := v.start
	r.title("A run without a turn", "floor", "tori")
	r.row("wall time, ms", "%.0f", []float64{s.floor[wall], s.tori[wall]}, "")
	r.row("own CPU, ms", "%.1f", []float64{s.floor[cpu], s.tori[cpu]}, "")
	r.row("fdatasync", "%.0f", []float64{math.NaN(), s.tori[syncs]}, "")
}

func (r *report) window(v *results) {
	r.title(fmt.Sprintf("Window full (context_length %d)", smallContext), columns(smallTurns[:], "floor %d", "tori %d")...)
	cells := func(name string) (all []float64) {
		for _, p := range v.small {
			all = append(all, of(name)(p.floor, 0), of(name)(p.tori, 0))
		}
		return all
	}
	a, b := v.small[0].tori[peak], v.small[len(v.small)-1].tori[peak]
	r.row("peak memory, MiB", "%.1f", cells(peak), r.verdict(maxPeak, " MiB", a, b))
	r.row("  ratio", "%.2f", []float64{math.NaN(), 1, math.NaN(), b / a}, r.verdict(maxGrowth, " ×", b/a))
	r.row("own time in the last tenth, ms", "%.2f", cells(ownLast), "")
	if v.start.tori != nil {
		var each, judged []float64
		for i, p := range v.small {
			n := float64(smallTurns[i])
			perTurn := (p.tori[syncs] - v.start.tori[syncs]) / n
			each, judged = append(each, math.NaN(), perTurn), append(judged, perTurn-(checkpoints(p.tori)+summarySyncs*p.tori[summarised])/n)
		}
		r.row("fdatasync per turn", "%.2f", each, r.verdict(maxSyncs, ", without checkpoints and summaries", judged...))
	}
	r.row("longest request, MiB", "%.2f", cells(body), "")
	r.row("decisions that rewrite the window", "%.0f", cells(events), "")
	r.row("  of them stubs", "%.0f", cells(stubBatches), "")
	r.row("  of them summaries", "%.0f", cells(summarised), "")
	note := "only at a decision  ok"
	for _, p := range v.small {
		if p.tori[breaks] > p.tori[events] {
			r.over++
			note = "only at a decision  OVER"
			break
		}
	}
	r.row("requests that do not begin with the one before", "%.0f", cells(breaks), note)
}

func (v *results) syncMedian() float64 { return median(inMS(v.syncs)) }

func inMS(all []time.Duration) []float64 {
	var v []float64
	for _, d := range all {
		v = append(v, ms(d))
	}
	return v
}

func column(all []sample, name string) []float64 {
	var v []float64
	for _, s := range all {
		v = append(v, s[name])
	}
	return v
}
