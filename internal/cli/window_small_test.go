package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// A model of 8,192 tokens works a small task to the end, with a plan and without, in both
// languages: the first request leaves room, tools included, and however much it reads no
// request is too long for it.
func TestAWindowOf8192(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, language string
		plan           bool
	}{{"plain", "en", false}, {"plan", "en", true}, {"plan-ja", "ja", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const turns = 24
			var asked atomic.Int64
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				if len(r.Tools) == 0 { // what left the window is to be summarised
					return llmtest.Answer{Text: "big.txt was read in parts: all of its lines are the same. go on with count.txt, as was asked."}
				}
				n := asked.Add(1)
				call := func(tool, args string) llmtest.Answer {
					return llmtest.Answer{Text: fmt.Sprintf("I look at part %d.", n), Calls: []llm.ToolCall{{ID: fmt.Sprint("c", n), Name: tool, Arguments: args}}}
				}
				switch {
				case n == 1 && c.plan:
					return call("submit_plan", `{"goal_understanding":{"main_objective":"count","success_criteria":["count.txt says 100"]},"task_decomposition":{"subtasks":[{"id":"a","description":"Count the lines","complexity":"low"}]}}`)
				case n < turns:
					return call("read_file", fmt.Sprintf(`{"path":"big.txt","start_line":%d}`, 40*n))
				case n == turns:
					return call("write_file", `{"path":"count.txt","content":"100\n"}`)
				case n == turns+1 && c.plan:
					return call("report_subtask", `{"status":"done","summary":"count.txt","criteria":[{"criterion":"count.txt says 100","evidence":"count.txt:1"}],"comment":"Count the lines\n\nThey were not counted."}`)
				case c.plan:
					return call("submit_verification", `{"verification_passed":true,"criteria":[{"criterion":"count.txt says 100","met":true,"evidence":"count.txt:1"}]}`)
				}
				return llmtest.Answer{Text: "count.txt says 100."}
			})
			h := newHouse(t, server.URL, "")
			for i := range 200 {
				h.write(fmt.Sprintf("repo/pkg%02d/file%03d.go", i%20, i), "package p\n")
			}
			h.write("repo/big.txt", strings.Repeat("A line of a file that is far larger than the window.\n", 4000))
			h.write("repo/AGENTS.md", "# Rules\n\nKeep it short.\n")
			h.commit("more")
			h.env = []string{fmt.Sprint("TORI_PLANNING_ENABLED=", c.plan)}
			h.config = h.write("config.yaml", fmt.Sprintf("language: %s\nllm: {provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test, context_length: 8192}}\nchecks: []\n", c.language, server.URL))
			h.ends(exitOK, "^completed: ", h.args...)
			if !strings.Contains(branches(t, h), "tori/") {
				t.Error("no branch")
			}
			all := server.Requests()
			if n := asked.Load(); n != turns+1 && (!c.plan || n != turns+2) {
				t.Fatalf("%d requests, %d of the run", len(all), n)
			}
			for i, r := range all {
				if n := len(r.Body) / 4; n > 8192 || i == 0 && n > 8192*7/10 {
					t.Errorf("request %d has about %d tokens", i+1, n)
				}
			}
			t.Logf("%d requests, the first has about %d tokens", len(all), len(all[0].Body)/4)
		})
	}
}

// Of an issue that is too long the model is shown what takes half of its window, and
// people are told how much of it that is not.
func TestALongIssueInASmallWindow(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Sequence(
		llmtest.Answer{Calls: []llm.ToolCall{{ID: "c", Name: "write_file", Arguments: `{"path":"count.txt","content":"100\n"}`}}}, llmtest.Answer{Text: "Done."}))
	h := newHouse(t, server.URL, "")
	h.write("issue.md", "# Count\n\n"+strings.Repeat("設定を読み込めない理由を表示する。\n", 700))
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test, context_length: 16384}", server.URL), "checks: []\nplanning: {enabled: false}")
	out := h.ends(exitOK, "^completed: ", h.args...)
	shown := 0
	for _, m := range server.Requests()[0].Messages {
		shown += strings.Count(*m.Content, "設定を") * len("設定を読み込めない理由を表示する。\n")
	}
	comment, err := readFile(filepath.Join(h.dir, "issue.comments.md"))
	if shown < 16_500 || shown > 17_500 || err != nil || !matches(out, `WARN .*The request is too long for the model's window: \d+ bytes of it were not shown`) ||
		!matches(string(comment), `(?m)^⚠️ The request is too long for the model's window: \d+ bytes of it were not shown`) {
		t.Errorf("%d bytes shown, %v\n%s\n%s", shown, err, out, comment)
	}
}
