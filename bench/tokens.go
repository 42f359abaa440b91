package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"toritsugi/internal/eval"
	"toritsugi/internal/memory"
)

// pairsDir holds the cases that are done by the same edits in each mode.
const pairsDir = "internal/eval/pairs"

// tokens has tori eval go through the pairs by their scripts, and returns what the
// requests took, by case and mode.
func (b *bench) tokens(ctx context.Context) (map[string]memory.TokenUsage, error) {
	config := filepath.Join(b.dir, "tokens.yaml")
	if err := os.WriteFile(config, []byte("language: en\n"), 0o600); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	run := exec.CommandContext(ctx, b.tori, "eval", "--config", config, "--cases", pairsDir, "--model", "script", "--modes", "plan,plain,bare", "--json")
	run.Stdout, run.Stderr = &out, os.Stderr
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("tori eval of %s: %w", pairsDir, err)
	}
	all := map[string]memory.TokenUsage{}
	for d := json.NewDecoder(&out); ; {
		var r struct {
			Case, Reason string
			Mode         eval.Mode
			Resolved     any // of a total: how many
			Estimated    memory.TokenUsage
		}
		err := d.Decode(&r)
		switch {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("tori eval of %s: %w", pairsDir, err)
		case r.Case == "": // a total
		case r.Resolved != true:
			return nil, fmt.Errorf("tori eval: %s (%s) is not resolved: %s", r.Case, r.Mode, r.Reason)
		default:
			all[r.Case+"/"+string(r.Mode)] = r.Estimated
		}
	}
}

// tokens prints what the pairs take, and their ratios beside the goals.
func (r *report) tokens(all map[string]memory.TokenUsage) {
	if len(all) == 0 {
		return
	}
	w := r.w
	keys := slices.Sorted(maps.Keys(all))
	line := func(name string, cell func(memory.TokenUsage) string) {
		_, _ = fmt.Fprintf(w, "%-34s", name)
		for _, k := range keys {
			_, _ = fmt.Fprintf(w, " %17s", cell(all[k]))
		}
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "\nTokens by estimate, the same edits in each mode\n%-34s", "")
	for _, k := range keys {
		_, _ = fmt.Fprintf(w, " %17s", k)
	}
	_, _ = fmt.Fprintln(w)
	line("requests / tokens sent", func(b memory.TokenUsage) string { return fmt.Sprintf("%d / %d", b.Requests, b.Sent) })
	line("of them repeated", func(b memory.TokenUsage) string { return percent(b.Cached, b) })
	line("tokens answered", func(b memory.TokenUsage) string { return fmt.Sprint(b.Answered) })
	for _, row := range []struct {
		name  string
		parts []string
	}{
		{"tool schemas, share", []string{memory.BillTools}}, {"system and rules", []string{memory.BillSystem}}, {"map and task message", []string{memory.BillMap, memory.BillTask}},
		{"planning, asked and answered", []string{memory.BillPlan}}, {"results of tools", []string{memory.BillResults}}, {"answers and calls", []string{memory.BillAnswers}},
	} {
		line(row.name, func(b memory.TokenUsage) string { return percent(partsOf(b.Parts, row.parts...), b) })
	}
	line("verification's requests", func(b memory.TokenUsage) string { return percent(b.Verification.Sent, b) })
	line("final summary call (none: scripts)", func(b memory.TokenUsage) string { return percent(b.Final.Sent, b) })
	line("first: tools + map + system", func(b memory.TokenUsage) string {
		return fmt.Sprint(partsOf(b.First, memory.BillTools, memory.BillMap, memory.BillSystem))
	})
	_, _ = fmt.Fprintf(w, "\n%-44s %8s %8s\n", "Goals", "is", "at most")
	for _, g := range goalsOf(all) {
		over := ""
		if g.is > g.most {
			over = "  OVER"
			r.over++
		}
		_, _ = fmt.Fprintf(w, "%-44s %8.2f %8.2f%s\n", g.name, g.is, g.most, over)
	}
}

func partsOf(parts map[string]int64, names ...string) (n int64) {
	for _, p := range names {
		n += parts[p]
	}
	return n
}

func percent(n int64, b memory.TokenUsage) string {
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(b.Sent, 1)))
}
