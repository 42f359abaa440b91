package ops

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// example writes the context of store-v2 §9.1's example output.
func example(t *testing.T) (base, uuid string) {
	t.Helper()
	base, uuid = t.TempDir(), "550e8400-e29b-41d4-a716-446655440000"
	dir := filepath.Join(base, "completed", uuid)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"metadata.json": `{"uuid":"550e8400-e29b-41d4-a716-446655440000","task_key":{"task_source":"github","owner":"notfolder","repo":"coding_agent","task_type":"issue","task_id":"27"},"created_at":"2024-01-15T10:30:00.123456Z","process_id":12345,"hostname":"worker-node-1","config":{"llm_provider":"openai","model":"gpt-4o","context_length":128000,"compression_threshold":0.7,"max_memory_messages":20},"user":"notfolder","format":1}`,
		"state.json":    `{"status":"completed","started_at":"2024-01-15T10:30:00.000000Z","updated_at":"2024-01-15T10:45:23.000000Z","completed_at":"2024-01-15T10:45:23.000000Z","llm_call_count":45,"tool_call_count":12,"total_tokens_used":45678,"current_context_tokens":1,"compression_count":2,"last_activity":"transition","error":null,"task_status":"completed","generation":1,"files":{}}`,
		"messages.jsonl": `{"seq":148,"role":"user","content":"Commit the changes","timestamp":"2024-01-15T10:30:02Z","tokens":4}
{"seq":149,"role":"tool","tool_name":"github_create_commit","content":"Success","timestamp":"2024-01-15T10:30:02Z","tokens":4}
{"seq":150,"role":"assistant","content":"{\"done\": true, \"comment\": \"Completed\"}\u001b]0;owned\u0007","timestamp":"2024-01-15T10:30:02Z","tokens":4}
`,
		"summaries.jsonl": `{"id":1,"start_seq":10,"end_seq":50,"summary":"Fixed authentication bug...","original_tokens":12000,"summary_tokens":800,"ratio":0.067,"timestamp":"2024-01-15T10:32:00Z"}
{"id":2,"start_seq":51,"end_seq":90,"summary":"Implemented new feature for...","original_tokens":15000,"summary_tokens":950,"ratio":0.063,"timestamp":"2024-01-15T10:34:30Z"}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base, uuid
}

// A model names the tools that it calls: no part of that steers a terminal.
func TestNamesDoNotSteer(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	line := `{"seq":151,"role":"tool","tool_name":"a\u001b]0;owned\u0007","content":"x","timestamp":"2024-01-15T10:30:02Z","tokens":4}` + "\n"
	if err := os.WriteFile(filepath.Join(base, "completed", uuid, "messages.jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := contextstore.Find(base, uuid, contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Show(&b, v, ShowOptions{Last: -1, Messages: true}); err != nil || strings.ContainsAny(b.String(), "\x1b\x07") {
		t.Errorf("%v, %q", err, b.String())
	}
}

// What retention compressed is shown as it was (store-v2 §7.2).
func TestShowOpensCompressedLogs(t *testing.T) {
	t.Parallel()
	for _, o := range []ShowOptions{{Last: 2, Lang: i18n.English}, {Last: -1, Messages: true}, {Last: 1, Messages: true, JSON: true}, {Last: 0}, {JSON: true}} {
		base, uuid := example(t)
		shown := func() string {
			var b bytes.Buffer
			v, err := contextstore.Find(base, uuid, contextstore.Viewer{Admin: true})
			if err == nil {
				err = Show(&b, v, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		want := shown()
		path := filepath.Join(base, "completed", uuid, "messages.jsonl")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write(text); err != nil || w.Close() != nil || os.WriteFile(path+".gz", z.Bytes(), 0o600) != nil || os.Remove(path) != nil {
			t.Fatal(err)
		}
		if got := shown(); got != want || !strings.Contains(want, "150") && o.Last != 0 {
			t.Errorf("%+v:\n%s\nwant\n%s", o, got, want)
		}
	}
}

const want = `Task UUID: 550e8400-e29b-41d4-a716-446655440000
Status: completed
Repository: github/notfolder/coding_agent
Task: issue #27
Started: 2024-01-15 10:30:00
Completed: 2024-01-15 10:45:23
Duration: 15分23秒
Files: DIR

Statistics:
  LLM calls: 45
  Tool calls: 12
  Total tokens: 45,678
  Compressions: 2

Messages: 150 (showing last 2)
  [149] tool: github_create_commit -> Success
  [150] assistant: {"done": true, "comment": "Completed"}]0;owned

Summaries: 2
  [1] seq 10-50: Fixed authentication bug...
  [2] seq 51-90: Implemented new feature for...
`

func TestShowIsTheSpecifiedOne(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	v, err := contextstore.Find(base, "550E", contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Show(&b, v, ShowOptions{Last: 2, Lang: i18n.Japanese, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Replace(b.String(), v.Dir, "DIR", 1); got != want {
		t.Errorf("got\n%s", got)
	}
	b.Reset()
	if err := Show(&b, v, ShowOptions{Last: -1, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var j struct {
		Messages int
		Status   string
		Metadata contextstore.Metadata
	}
	if err := json.Unmarshal(b.Bytes(), &j); err != nil || j.Messages != 150 || j.Status != "completed" || j.Metadata.UUID != uuid {
		t.Errorf("%s, %v", b.String(), err)
	}
	b.Reset()
	if err := Show(&b, v, ShowOptions{Messages: true, Tools: true, Last: 1}); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "[150] assistant") || strings.Contains(s, "149") || strings.ContainsRune(s, 0x1b) {
		t.Errorf("got\n%s", s)
	}
}

func TestTasksListsAndFilters(t *testing.T) {
	t.Parallel()
	base, _ := example(t)
	broken := filepath.Join(base, "running", "00000000-0000-4000-8000-000000000000")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    TasksOptions
		want bool
	}{
		{TasksOptions{}, true}, {TasksOptions{Status: "completed"}, true}, {TasksOptions{Status: "running"}, false},
		{TasksOptions{User: "notfolder"}, true}, {TasksOptions{User: "x"}, false}, {TasksOptions{JSON: true}, true},
	} {
		c.o.Limit, c.o.Width, c.o.Viewer = 10, 80, contextstore.Viewer{Admin: true}
		var b bytes.Buffer
		if err := Tasks(t.Context(), &b, base, c.o); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "550e8400"); got != c.want {
			t.Errorf("%+v:\n%s", c.o, b.String())
		}
		if damage := map[bool]string{false: "Unreadable: ", true: `{"damaged":"`}[c.o.JSON]; !strings.Contains(b.String(), damage) {
			t.Errorf("the damaged context is passed over in silence:\n%s", b.String())
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 10, "short"}, {"exactly", 7, "exactly"}, {"one too many", 11, "one too ma…"},
		{"取り次ぎ", 8, "取り次ぎ"}, {"取り次ぎ", 7, "取り次…"}, {"a\n b\tc", 10, "a b c"},
	} {
		if got := fit(c.s, c.n); got != c.want {
			t.Errorf("fit(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// Where not all is verified, no text calls the run completed without saying so.
func TestUnverifiedIsSaid(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	path := filepath.Join(base, "completed", uuid, "state.json")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(b), `"generation":1`, `"unverified":true,"generation":1`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := contextstore.Find(base, uuid, contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	var show, tasks, rows bytes.Buffer
	o := TasksOptions{Limit: 10, Width: 80, Viewer: contextstore.Viewer{Admin: true}}
	err = errors.Join(Show(&show, v, ShowOptions{Last: 2, Now: time.Now()}), Tasks(t.Context(), &tasks, base, o))
	o.JSON = true
	if err = errors.Join(err, Tasks(t.Context(), &rows, base, o)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{show.String(): "Status: completed (unverified)", tasks.String(): "550e8400  unverified ", rows.String(): `"status":"completed"`} {
		if !strings.Contains(text, want) || !strings.Contains(text, "unverified") {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Of two final summaries of a run the last counts: it took the place of the other one.
func TestTheLastFinalSummaryCounts(t *testing.T) {
	for name, line := range map[string]func([]byte) (string, error){"in a line": summaryLine(), "in full": fullSummary()} {
		for i, want := range []string{"seq 1-40 (final)", "seq 1-40 (final, replaces it)"} {
			got, err := line([]byte(`{"id":1,"start_seq":1,"end_seq":40,"final":true,"summary":"s","timestamp":"2024-01-15T10:32:00Z"}`))
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %d: %q, %v", name, i, got, err)
			}
		}
	}
}
