package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The budgets of the ledger (docs: DESIGN §9).
const (
	appendAllowance = 1000 * ownAllowance / 2 // µs of a message above the floor: a turn appends twice
	maxOpen         = 100.0                   // ms, open, repair and claim
	maxWindow       = 5.0                     // ms, 32k tokens
	maxReadRatio    = 2.0                     // of what is read to its own bytes
	maxOpenGrowth   = 1.1                     // of what opening reads, a long history to a short one
	maxFace         = 50.0                    // ms, listings, key search and statistics
	maxSeed         = 2000.0                  // ms, the seeds' queries
	maxIdle         = 64.0                    // KiB of an idle context
	maxContextFew   = 1.5                     // MB of a context after 100 calls (store-v2 §7.1)
	maxContextMany  = 2.0                     // MB after 1,000
	maxContextShort = 1.0                     // MB after 1,000, of which summaries were written
)

// ledger prints what was measured of the ledger.
func (r *report) ledger(parts map[string]sample) {
	for _, p := range []struct {
		name  string
		print func(sample)
	}{{partAppend, r.ledgerAppend}, {partLong, r.ledgerLong}, {partRows, r.ledgerRows}, {partIdle, r.ledgerIdle}, {partMemory, r.memory}} {
		if s, ok := parts[p.name]; ok {
			p.print(s)
		}
	}
}

func (r *report) ledgerAppend(s sample) {
	none := math.NaN()
	many := fmt.Sprintf("%.0f", s[atOnce])
	r.title(fmt.Sprintf("Ledger: append, %.0f bytes, synced", s[appendBytes]), "floor 1", "ours 1", "floor "+many, "ours "+many)
	r.row("µs per message", "%.0f", []float64{s[floorOne], s[appendOne], s[floorMany], s[appendMany]}, "")
	r.row("  × floor", "%.2f", []float64{1, s[appendOne] / s[floorOne], 1, s[appendMany] / s[floorMany]}, "")
	above := []float64{s[appendOne] - s[floorOne], s[appendMany] - s[floorMany]}
	r.row("  above the floor, µs", "%.0f", []float64{none, above[0], none, above[1]}, r.verdict(appendAllowance, " µs", above...))
	r.row("own CPU, µs per message", "%.0f", []float64{none, none, none, s[appendCPU]}, "")
	r.row("allocations per message", "%.1f", []float64{none, s[appendAlloc]}, "")
	r.row("bytes allocated per message", "%.0f", []float64{none, s[appendHeap]}, "")
	r.row("fdatasync per turn", "%.2f", []float64{none, s[turnSyncs]}, r.verdict(maxSyncs, "", s[turnSyncs]))
	r.row("syncs of directories per turn", "%.2f", []float64{none, s[turnDirs]}, "")
	r.row("row updates per turn", "%.2f", []float64{none, s[turnRows]}, r.verdict(maxRows, "", s[turnRows]))
	r.row("bytes appended and replaced per turn", "%.0f", []float64{none, s[turnWrites]}, "")
	r.row("peak memory of the process, MiB", "%.1f", []float64{none, none, none, s[peak]}, r.verdict(maxPeak, " MiB", s[peak]))
}

func (r *report) ledgerLong(s sample) {
	r.title(fmt.Sprintf("Ledger: %.0f messages, %.0f MB, not cached", s[longCount], s[longBytes]/1e6), "ms", "bytes read", "naive ms", "× naive", "own bytes")
	line := func(label, time, read string, own float64, note string) {
		r.row(label, "%.6g", []float64{round(s[time]), s[read], round(s[allTime]), round(s[allTime] / s[time]), own}, note)
	}
	line(fmt.Sprintf("open, repair %.0f messages, claim, after kill -9", s[sinceKilled]), openTime, openRead, s[openSince], r.verdict(maxOpen, " ms", s[openTime]))
	ratio := s[openRead] / s[openFewRead]
	r.row(fmt.Sprintf("  bytes read, × with %d messages behind", fewMessages), "%.6g", []float64{math.NaN(), round(ratio)}, r.verdict(maxOpenGrowth, " ×", ratio))
	line("the window of 32k tokens, by memory", resumeTime, resumeRead, s[resumeOwn], r.verdict(maxWindow, " ms", s[resumeTime]))
	r.row("  bytes read, × its own", "%.6g", []float64{math.NaN(), round(s[resumeRead] / s[resumeOwn])}, r.verdict(maxReadRatio, " ×", s[resumeRead]/s[resumeOwn]))
	r.row("  bytes read by an append to it", "%.6g", []float64{math.NaN(), s[warmRead]}, r.verdict(0, "", s[warmRead]))
	line("32k tokens from the middle, by range", rangeTime, rangeRead, s[rangeOwn], r.verdict(maxWindow, " ms", s[rangeTime]))
	r.row("  bytes read, × its own", "%.6g", []float64{math.NaN(), round(s[rangeRead] / s[rangeOwn])}, r.verdict(maxReadRatio, " ×", s[rangeRead]/s[rangeOwn]))
	line("count the messages", countTime, countRead, math.NaN(), "")
	r.row("peak memory of the process, MiB", "%.1f", []float64{s[peak]}, r.verdict(maxPeak, " MiB", s[peak]))
}

func (r *report) ledgerRows(s sample) {
	r.title(fmt.Sprintf("Ledger: %.0f rows, %.0f MB", s[rowsCount], s[rowsBytes]/1e6), "ms", "naive ms", "× naive")
	for _, kind := range []struct {
		prefix string
		limit  float64
	}{{listPrefix, maxFace}, {statsPrefix, maxFace}, {seedPrefix, maxSeed}} {
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if !strings.HasPrefix(name, kind.prefix) {
				continue
			}
			r.row(name, "%.6g", []float64{round(s[name]), round(s[rowsNaive]), round(s[rowsNaive] / s[name])}, r.verdict(kind.limit, " ms", s[name]))
		}
	}
}

func (r *report) ledgerIdle(s sample) {
	r.title(fmt.Sprintf("Ledger: %.0f contexts that wait, %d messages each", s[idleCount], idleMessages), "each", "naive")
	r.row("heap and stacks in use, KiB", "%.1f", []float64{s[idleMemory], s[idleNaive]}, r.verdict(maxIdle, " KiB", s[idleMemory]))
	r.row("  of it stacks, KiB", "%.1f", []float64{s[idleStacks]}, "")
	r.row("goroutines", "%.2f", []float64{s[idleGoroutines]}, "")
	r.row("descriptors", "%.2f", []float64{s[idleFiles]}, "")
}

// memory prints what the window of a run takes and sends.
func (r *report) memory(s sample) {
	few, many := fmt.Sprint(fewCalls), fmt.Sprintf("%.0f", s[memoryCalls])
	r.title("Memory: a run with a window of 32k tokens, after calls", few, many, "naive "+few, "naive "+many)
	none := math.NaN()
	r.row("a context and its window, MB", "%.2f", []float64{s[memoryFew], none, s[memoryThen]}, r.verdict(maxContextFew, " MB", s[memoryFew]))
	r.row("", "%.2f", []float64{none, s[memoryMany], none, s[memoryNaive]}, r.verdict(maxContextMany, " MB", s[memoryMany]))
	r.row("  with summaries", "%.2f", []float64{none, s[memoryShort]}, r.verdict(maxContextShort, " MB", s[memoryShort]))
	r.row(fmt.Sprintf("the most, where the window (%d tokens) is full", fullWindow), "%.2f", []float64{s[fullFew], s[fullMany], s[memoryThen], s[memoryNaive]}, "")
	r.row("  growth", "%.2f", []float64{1, s[fullMany] / s[fullFew], 1, s[memoryNaive] / s[memoryThen]}, r.verdict(maxGrowth, " ×", s[fullMany]/s[fullFew]))
	r.row("  its longest request, KB", "%.1f", []float64{s[sentFew] / 1e3, s[sentMany] / 1e3}, "")
	r.row("  growth", "%.2f", []float64{1, s[sentMany] / s[sentFew]}, r.verdict(maxGrowth, " ×", s[sentMany]/s[sentFew]))
	r.row("longest request, KB", "%.0f", []float64{none, s[requestMany] / 1e3, none, s[requestNaive] / 1e3}, "")
	r.row("all requests together, MB", "%.1f", []float64{none, s[requestSent] / 1e6, none, s[naiveSent] / 1e6}, "")
	r.row("  of it sent just so before, %", "%.1f", []float64{none, 100 * s[requestKept]}, "")
	r.row("requests that do not begin with the one before", "%.0f", []float64{none, s[requestCuts]}, r.verdict(s[decisions], " decisions", s[requestCuts]))
	r.row("a turn: append, fit the window, µs", "%.0f", []float64{s[turnEarly], s[turnLate]}, "")
	r.row("  bytes read", "%.0f", []float64{none, s[turnRead]}, r.verdict(0, "", s[turnRead]))
	r.row("assemble it again, cached, ms", "%.2f", []float64{none, s[warmOpen], none, s[warmNaive]}, "")
	r.row("  bytes read, × those of its messages", "%.2f", []float64{none, s[warmOpened] / s[warmOwn]}, r.verdict(maxReadRatio, " ×", s[warmOpened]/s[warmOwn]))
	r.row("peak memory of the process, MiB", "%.1f", []float64{none, s[peak]}, r.verdict(maxPeak, " MiB", s[peak]))
}

// round keeps three digits of a figure.
func round(f float64) float64 {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(f)))-2)
	return math.Round(f/unit) * unit
}
