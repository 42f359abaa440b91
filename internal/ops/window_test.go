package ops

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// seen writes a small run on a model that takes cache breakpoints.
func seen(t *testing.T) contextstore.View {
	t.Helper()
	base, uuid := t.TempDir(), "550e8400-e29b-41d4-a716-446655440000"
	dir := filepath.Join(base, "paused", uuid)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out := strings.Repeat(`ok\n`, 100)
	for name, text := range map[string]string{
		"metadata.json": `{"uuid":"` + uuid + `","task_key":{"task_source":"folder","owner":"o","repo":"r","task_type":"issue","task_id":"1"},"created_at":"2024-01-15T10:30:00Z","config":{"llm_provider":"anthropic","model":"claude"},"format":1}`,
		"state.json":    `{"status":"paused","task_status":"paused","files":{}}`,
		"offered.json":  `{"tools":[{"Name":"shell","Description":"Runs <a> command.","Schema":{"type":"object"}}]}`,
		"messages.jsonl": `{"seq":1,"role":"system","content":"SYSTEM","timestamp":"2024-01-15T10:30:01Z","tokens":1,"sum":1}
{"seq":2,"role":"user","content":"切り詰めの不具合を直してください。\u001b[31m全角文字の途中で切れます。","timestamp":"2024-01-15T10:30:02Z","tokens":9,"sum":10}
{"seq":3,"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"shell","arguments":"{\"command\":\"ls\"}"}],"timestamp":"2024-01-15T10:30:03Z","tokens":0,"sum":10}
{"seq":4,"role":"tool","tool_name":"shell","tool_call_id":"c1","content":"` + out + `","timestamp":"2024-01-15T10:30:04Z","tokens":75,"sum":85}
{"seq":5,"role":"assistant","content":"next","tool_calls":[{"id":"c2","name":"shell","arguments":"{}"}],"timestamp":"2024-01-15T10:30:05Z","tokens":1,"sum":86,"usage":{"prompt_tokens":400,"completion_tokens":5,"cached_tokens":300}}
{"seq":6,"role":"tool","tool_name":"shell","tool_call_id":"c2","content":"<done> & out","timestamp":"2024-01-15T10:30:06Z","tokens":3,"sum":89}
{"seq":7,"role":"assistant","content":"Done.","timestamp":"2024-01-15T10:30:08Z","tokens":1,"sum":90}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "messages.jsonl" {
			at := strings.Index(text, `{"seq":3`)
			b, _ := json.Marshal(at)
			line := `{"id":1,"type":"mask","from_seq":3,"offset":` + string(b) + `,"dropped":0,"reason":"a batch","timestamp":"2024-01-15T10:30:07.000000Z","mask_seq":4,"tokens":300,"freed":60,"at_seq":6}` + "\n"
			if err := os.WriteFile(filepath.Join(dir, "window.jsonl"), []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	v, err := contextstore.Find(base, "550e", contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func shownWindow(t *testing.T, v contextstore.View, o WindowOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Window(&b, v, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const wantWindow = `Run 550e8400-e29b-41d4-a716-446655440000: the request that message 7 answered,
2024-01-15 10:30:08 UTC, by anthropic/claude.
Estimate: 182 tokens, 29 of them for the tools (the provider had reported
nothing to calibrate it: 4.00 bytes each).

PART          SEQ ROLE        TOKENS   STORED SHOWN  TEXT
system          1 system           9        1        SYSTEM
request         2 user            39        9        切り詰めの不具合を直してく…
recent          3 assistant       27        0        {shell {"command":"ls"}}
recent          4 tool            31       75 stub   [tool output omitted: 100 …
recent          5 assistant       24        1        next {shell {}}
recent          6 tool            20        3        <done> & out
`

func TestWindow(t *testing.T) {
	t.Parallel()
	v := seen(t)
	got := shownWindow(t, v, WindowOptions{Lang: i18n.English})
	for _, part := range []string{wantWindow, "\nDecisions about the window so far: 1\n  #1 2024-01-15 10:30:07 mask: old output and arguments in messages 3 to 4\n  became stubs\n     about 300 tokens before, 240 after\n     why: a batch\n",
		"\nTools offered: 1 (tokens each)\n  shell (29)\nCache breakpoints: behind the tools and behind messages 1, 4, 6\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("no\n%s\nin\n%s", part, got)
		}
	}
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for _, at := range []int64{0, 5, 3} {
			for line := range strings.Lines(shownWindow(t, v, WindowOptions{Lang: lang, At: at})) {
				if columns(strings.TrimSuffix(line, "\n")) > 80 || strings.ContainsRune(line, '\x1b') {
					t.Errorf("at %d: %q", at, line)
				}
			}
		}
	}
	// Before the decision the output stood there whole.
	if got := shownWindow(t, v, WindowOptions{Lang: i18n.English, At: 5, Request: true}); !strings.Contains(got, "\n[4] tool (recent) shell\n    ok\n    ok\n") || strings.Contains(got, "omitted") || strings.ContainsRune(got, '\x1b') {
		t.Errorf("%s", got)
	}
	if got := shownWindow(t, v, WindowOptions{Lang: i18n.English, At: 5}); !strings.Contains(got, "The provider reported: 400 tokens, 300 of them from its cache (75 %).") || !strings.Contains(got, "so far: 0\n") {
		t.Errorf("%s", got)
	}
}

func TestWindowForPrograms(t *testing.T) {
	t.Parallel()
	v := seen(t)
	var got struct {
		Breakpoints struct {
			Tools  bool
			Behind []int64
		} `json:"cache_breakpoints"`
		Tools    []struct{ Description string }
		Messages []struct {
			Seq    int64
			Masked bool
		}
		Decisions []map[string]any
	}
	out := shownWindow(t, v, WindowOptions{JSON: true})
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !got.Breakpoints.Tools || !slices.Equal(got.Breakpoints.Behind, []int64{1, 4, 6}) || got.Tools[0].Description != "Runs <a> command." || len(got.Messages) != 6 || !got.Messages[3].Masked ||
		got.Decisions[0]["tokens_after"] != 240.0 || got.Decisions[0]["first_seq"] != 3.0 || !strings.Contains(out, "<done> & out") {
		t.Errorf("%s", out)
	}
	lines := strings.Split(strings.TrimSpace(shownWindow(t, v, WindowOptions{JSON: true, Request: true})), "\n")
	if len(lines) != 6 || lines[5] != `{"seq":6,"role":"tool","content":"<done> & out","tool_call_id":"c2","tool_name":"shell"}` {
		t.Errorf("%q", lines)
	}
	// A run that has asked nothing yet, and definitions that cannot be read.
	for _, name := range []string{"messages.jsonl", "window.jsonl"} {
		if err := os.Remove(filepath.Join(v.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(v.Dir, "offered.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shownWindow(t, v, WindowOptions{Lang: i18n.English}); !strings.Contains(got, "has asked nothing yet: it is paused\nand has no messages.") || !strings.Contains(got, "  offered.json: ") {
		t.Errorf("%s", got)
	}
}
