package main

import (
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/eval"
	"toritsugi/internal/memory"
)

// goal is a figure that must not be larger than most.
type goal struct {
	name     string
	is, most float64
}

// What a pair may take: tokens sent with a plan beside without, long tasks and
// others; without beside the minimal loop; the share of the requests that verify,
// in percent; and what stands before the task in the first request, in tokens.
const (
	smallPlan, longPlan = 1.25, 1.10
	mostPlain           = 1.5
	mostVerify          = 8
	mostFirst           = 3500
)

// goalsOf are the goals of pairs, by what their requests took by case and mode. A long
// task is one whose name ends in -long.
func goalsOf(all map[string]memory.TokenUsage) (goals []goal) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, mode, _ := strings.Cut(key, "/")
		plan, planned := all[key], mode == string(eval.Plan)
		plain, bare := all[name+"/"+string(eval.Plain)], all[name+"/"+string(eval.Bare)]
		if !planned || plain.Sent == 0 || bare.Sent == 0 {
			continue
		}
		most := smallPlan
		if strings.HasSuffix(name, "-long") {
			most = longPlan
		}
		goals = append(goals,
			goal{name + ": plan / plain", float64(plan.Sent) / float64(plain.Sent), most},
			goal{name + ": plain / bare", float64(plain.Sent) / float64(bare.Sent), mostPlain},
			goal{name + ": verification, %", 100 * float64(plan.Verification.Sent) / float64(max(plan.Sent, 1)), mostVerify},
			goal{name + ": first request, tokens before the task", float64(plan.First[memory.BillTools] + plan.First[memory.BillMap] + plan.First[memory.BillSystem]), mostFirst})
	}
	return goals
}
