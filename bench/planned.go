package main

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// What the model without a model says in a run that a plan leads: a plan of one
// subtask, a reflection beside every third call, as it is asked for, the result,
// and a verification.
const (
	planText = `{"phase":"planning","goal_understanding":{"main_objective":"The turns are counted","success_criteria":["all turns were taken"],"constraints":[]},` +
		`"task_decomposition":{"reasoning":"One step.","subtasks":[{"id":"task_1","description":"Count the turns","dependencies":[]}]},"action_plan":{"execution_order":["task_1"],"actions":[]}}`
	reflectionText   = `{"phase":"reflection","reflection":{"status":"success","evaluation":"The turns go on.","plan_revision_needed":false}}`
	resultText       = `{"phase":"execution","task_id":"task_1","status":"done","summary":"` + finalText + `"}`
	verificationText = `{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"all turns were taken","met":true,"evidence":"the last turn"}],"issues_found":[],` +
		`"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":1}`
)

// reflectEvery is planning.reflection.trigger_interval by default.
const reflectEvery = 3

// next is the answer to a request of the conversation, and whether it calls the
// tool.
func (s *server) next() (a answer, calls bool) {
	k := s.talk.turn + 1
	if !s.planned {
		if k <= s.turns {
			return callOf(s.talk.tool, k), true
		}
		return answer{text: finalText}, false
	}
	switch {
	case s.figures.Requests == 1:
		return answer{text: planText}, false
	case k <= s.turns:
		a = callOf(s.talk.tool, k)
		if k > 1 && k%reflectEvery == 1 {
			a.text = reflectionText
		}
		return a, true
	case !s.resulted:
		s.resulted = true
		return answer{text: resultText}, false
	}
	return answer{text: verificationText}, false
}

// plannedTurns are the runs that are made with a plan, too, as far as they are
// made at all.
var plannedTurns = []int{100, 1000}

// led makes one run of tori with a plan.
func (b *bench) led(ctx context.Context, p plan, all map[int][]sample) error {
	p.planned = true
	one, err := b.agent(ctx, p)
	if err != nil {
		return fmt.Errorf("tori with a plan, %d turns: %w", p.turns, err)
	}
	all[p.turns] = append(all[p.turns], one)
	return nil
}

// slope is what a turn costs between the shortest and the longest run of some.
func slope(name string, first, last sample, turns int) float64 {
	return (last[name] - first[name]) / float64(turns)
}

// ledByPlan compares runs with a plan with those without, of the same turns. A
// step that cost more with more steps behind it would show in the last tenth of
// the longest run, and in what a turn between the two adds.
func (r *report) ledByPlan(v *results) {
	var turns []int
	for _, n := range v.turns {
		if v.planned[n] != nil {
			turns = append(turns, n)
		}
	}
	if len(turns) == 0 {
		return
	}
	r.title("Led by a plan, beside the plain loop", columns(turns, "plain %d", "plan %d")...)
	cells := func(figure func(sample, int) float64) (all []float64) {
		for _, n := range turns {
			all = append(all, figure(v.pairs[n].tori, n), figure(v.planned[n], n))
		}
		return all
	}
	ratio := func(name string) func(sample, int) float64 {
		return func(s sample, n int) float64 { return s[name] / v.pairs[n].tori[name] }
	}
	each := func(name string) func(sample, int) float64 {
		return func(s sample, n int) float64 { return (s[name] - v.start.tori[name]) / float64(n) }
	}
	r.row("own CPU per turn, ms", "%.2f", cells(each(cpu)), "")
	r.row("own CPU, × plain", "%.2f", cells(ratio(cpu)), "")
	r.row("own time: median, ms", "%.2f", cells(of(own)), "")
	r.row("own time in the last tenth, ms", "%.2f", cells(of(ownLast)), r.flatPlan(v, turns))
	r.row("own time in the last tenth, × plain", "%.2f", cells(ratio(ownLast)), "")
	r.row("peak memory, MiB", "%.1f", cells(of(peak)), r.verdict(maxPeak, " MiB", v.planned[turns[len(turns)-1]][peak]))
	r.row("fdatasync per turn", "%.2f", cells(each(syncs)), "")
	r.row("row updates per turn", "%.2f", cells(each(rows)), "")
	r.row("bytes appended and replaced per turn", "%.0f", cells(each(appended)), "")
	var ratios []float64
	for _, n := range turns {
		ratios = append(ratios, v.planned[n][fileRatio])
	}
	r.row("file bytes per byte of conversation", "%.2f", cells(of(fileRatio)), r.verdict(maxFileRatio, "", ratios...))
	r.row("requests that do not begin with the one before", "%.0f", cells(of(breaks)), "")
	first, last := turns[0], turns[len(turns)-1]
	if first == last {
		return
	}
	between := func(name string) []float64 {
		return []float64{slope(name, v.pairs[first].tori, v.pairs[last].tori, last-first), slope(name, v.planned[first], v.planned[last], last-first)}
	}
	r.title(fmt.Sprintf("  a turn between %d and %d", first, last), "plain", "plan")
	r.row("own CPU, ms", "%.2f", between(cpu), "")
	row, synced := between(rows), between(syncs)
	checked := synced[1] - (checkpoints(v.planned[last])-checkpoints(v.planned[first]))/float64(last-first)
	r.row("fdatasync", "%.2f", synced, r.verdict(maxSyncs, ", without checkpoints", checked))
	r.row("row updates", "%.2f", row, r.verdict(maxRows, "", row[1]))
	r.row("bytes appended and replaced", "%.0f", between(appended), "")
}

// flatPlan judges whether a step with many behind it costs more than one with
// few, beyond what it does without a plan.
func (r *report) flatPlan(v *results, turns []int) string {
	first, last := slices.Min(turns), slices.Max(turns)
	if first == last {
		return ""
	}
	above := func(n int) float64 { return v.planned[n][ownLast] - v.pairs[n].tori[ownLast] }
	grown := above(last) - above(first)
	if grown > flatWithin || math.IsNaN(grown) {
		r.over++
		return fmt.Sprintf("same above plain at %d as at %d  OVER by %.2f ms", last, first, grown)
	}
	return fmt.Sprintf("same above plain at %d as at %d  ok", last, first)
}
