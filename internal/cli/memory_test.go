package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
)

func TestMemoryReplay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	line := `{"source":"made","opening":[{"role":"system","content":"S"},{"role":"user","content":"Repair a.go"}],"turns":[` +
		strings.TrimSuffix(strings.Repeat(`{"text":"look","tool_calls":[{"id":"1","name":"shell","arguments":{"command":"ls"}}],"observations":[{"role":"tool","content":"`+strings.Repeat("x", 900)+`"}]},`, 40), ",") + "]}\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		c := &console{out: &out, err: &errs, lang: i18n.English, getenv: func(string) string { return "" }}
		code := c.main(append([]string{"memory", "replay"}, args...))
		return code, out.String(), errs.String()
	}
	code, out, errs := run(file)
	if code != 0 || !strings.Contains(out, "40 turns of made") || !strings.Contains(out, "hybrid") || strings.Count(out, "PINNED:") != 1 || !strings.Contains(out, "List price of openai/gpt-5.4,") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	code, out, errs = run(file, "--json", "--system", "500")
	var got struct {
		Price    map[string]any   `json:"price"`
		Policies []map[string]any `json:"policies"`
	}
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got.Policies) != 4 {
		t.Fatalf("%d, %v\n%s%s", code, err, out, errs)
	}
	for i, name := range []string{"none", "mask", "summary", "hybrid"} {
		for _, k := range []string{"tokens_ratio", "cached_share", "cost_ratio", "cost_usd", "pinned_in_view", "pinned_recallable", "pinned_lost"} {
			if got.Policies[i][k] == nil || got.Policies[i]["policy"] != name {
				t.Errorf("no %s in %v", k, got.Policies[i])
			}
		}
	}
	full := got.Policies[0]["cost_usd"].(float64)
	if got.Price["model"] != "openai/gpt-5.4" || got.Price["input"] != 2.5 || got.Policies[0]["cost_ratio"] != 1.0 {
		t.Errorf("%v", got)
	}
	// A model of the settings' own table.
	prices := filepath.Join(filepath.Dir(file), "prices.yaml")
	config := filepath.Join(filepath.Dir(file), "config.yaml")
	for name, text := range map[string]string{prices: "as_of: \"2026-01-02\"\nmodels:\n  \"own/m\": {input: 5, cached_input: 0.5, output: 30}\n", config: "llm: {prices_file: " + prices + "}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs = run(file, "--json", "--system", "500", "--model", "own/m", "--config", config)
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || math.Abs(got.Policies[0]["cost_usd"].(float64)-2*full) > 1e-9 {
		t.Errorf("%d, %v\n%s%s", code, err, out, errs)
	}
	for _, bad := range [][]string{{file + "x"}, {file, "--min-share", "0"}, {filepath.Dir(file)}, {file, "--model", "own/m"}, {file, "--config", file}} {
		if code, _, errs := run(bad...); code != exitUsage || errs == "" {
			t.Errorf("%v: %d %s", bad, code, errs)
		}
	}
}
