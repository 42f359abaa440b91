package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

func exported(t *testing.T, base, uuid string, o ExportOptions) string {
	t.Helper()
	var b bytes.Buffer
	o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") }
	if err := Export(&b, base, uuid, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What models and strangers wrote is no markup of a page.
func TestPagesHoldTextsAlone(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	dir := filepath.Join(base, "completed", uuid)
	evil := "```\n# head\n<script>alert(1)</script> ![x](http://evil/) hunter2 \x1b[31m"
	line, err := json.Marshal(map[string]any{"seq": 1, "role": "assistant", "content": evil, "timestamp": "2024-01-15T10:30:02Z", "tokens": 4, "tool_calls": []any{map[string]any{"id": "a", "name": "<b>", "arguments": evil}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "messages.jsonl"), append(append(line, '\n'), "torn <i>\n"...), 0o600)
	}
	meta, rerr := os.ReadFile(filepath.Join(dir, "metadata.json"))
	meta = bytes.Replace(meta, []byte(`"format":1`), []byte(`"format":1,"title":"<img> | *bold* [x](y)"`), 1)
	if err = errors.Join(err, rerr, os.WriteFile(filepath.Join(dir, "metadata.json"), meta, 0o600)); err != nil {
		t.Fatal(err)
	}
	md := exported(t, base, uuid, ExportOptions{Format: FormatMarkdown, Lang: i18n.English})
	html := exported(t, base, uuid, ExportOptions{Format: FormatHTML, Lang: i18n.English})
	for _, s := range []string{md, html} {
		if strings.Contains(s, "hunter2") || strings.Contains(s, "\x1b") || !strings.Contains(s, "[SECRET]") {
			t.Errorf("%q", s)
		}
	}
	for _, s := range []string{"<script>", "<b>", "<img>", "<i>"} {
		if strings.Contains(html, s) {
			t.Errorf("%s in\n%s", s, html)
		}
	}
	if !strings.Contains(md, "\n````text\n```\n# head\n<script>") || !strings.Contains(md, `# &lt;img&gt; \| \*bold\* \[x\](y)`) {
		t.Error(md)
	}
}

// A step of a trajectory is an answer with its calls and their results; a call's arguments are an
// object, and a result names a call of its own step alone.
func TestATIF(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	messages := `{"seq":1,"role":"system","content":"s","timestamp":"2024-01-15T10:30:02Z","tokens":4}
{"seq":2,"role":"user","content":"u","timestamp":"2024-01-15T10:30:02Z","tokens":4}
{"seq":3,"role":"assistant","content":"a","reasoning_content":"why","timestamp":"2024-01-15T10:30:02Z","tokens":4,"usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":3,"cost_micro_usd":1500000},"tool_calls":[{"id":"c1","name":"x","arguments":"{\"a\":1}"},{"id":"c2","name":"y","arguments":"[1"}]}
{"seq":4,"role":"tool","tool_name":"x","content":"one","timestamp":"2024-01-15T10:30:03Z","tokens":4,"tool_call_id":"c1"}
no line
{"seq":5,"role":"tool","tool_name":"y","content":"two","timestamp":"2024-01-15T10:30:03Z","tokens":4,"tool_call_id":"c9"}
{"seq":6,"role":"assistant","content":"end","timestamp":"2024-01-15T10:30:04Z","tokens":4,"answered_by":"p/m"}
`
	if err := os.WriteFile(filepath.Join(base, "completed", uuid, "messages.jsonl"), []byte(messages), 0o600); err != nil {
		t.Fatal(err)
	}
	got := exported(t, base, uuid, ExportOptions{Format: FormatATIF, Version: "1.2"})
	const steps = `"steps":[
{"step_id":1,"timestamp":"2024-01-15T10:30:02.000000Z","source":"system","message":"s"},
{"step_id":2,"timestamp":"2024-01-15T10:30:02.000000Z","source":"user","message":"u"},
{"step_id":3,"timestamp":"2024-01-15T10:30:02.000000Z","source":"agent","message":"a","reasoning_content":"why","tool_calls":[{"tool_call_id":"c1","function_name":"x","arguments":{"a":1}},{"tool_call_id":"c2","function_name":"y","arguments":{"text":"[1"}}],"observation":{"results":[{"source_call_id":"c1","content":"one"},{"content":"two"}]},"metrics":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":3,"cost_usd":1.5}},
{"step_id":4,"timestamp":"2024-01-15T10:30:04.000000Z","source":"agent","model_name":"p/m","message":"end"}],"final_metrics":{"total_prompt_tokens":0,`
	if !json.Valid([]byte(got)) || !strings.Contains(got, steps) ||
		!strings.HasPrefix(got, `{"schema_version":"ATIF-v1.4","session_id":"`+uuid+`","agent":{"name":"tori","version":"1.2","model_name":"openai/gpt-4o"},`) {
		t.Error(got)
	}
}

// A run that is moved while it is looked for is read nonetheless, whole.
func TestARunThatMovesIsReadWhole(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	want := exported(t, base, uuid, ExportOptions{Format: FormatJSON})
	if !json.Valid([]byte(want)) || !strings.Contains(want, `"messages.jsonl":[`) {
		t.Fatal(want)
	}
	at := func(dir string) string { return filepath.Join(base, dir, uuid) }
	if err := os.MkdirAll(filepath.Join(base, "paused"), 0o700); err != nil {
		t.Fatal(err)
	}
	stop, moved := make(chan struct{}), sync.WaitGroup{}
	moved.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(at("completed"), at("paused"))
			time.Sleep(time.Millisecond)
			_ = os.Rename(at("paused"), at("completed"))
			time.Sleep(time.Millisecond)
		}
	})
	for range 50 {
		var b bytes.Buffer
		err := Export(&b, base, uuid, ExportOptions{Format: FormatJSON, Redact: func(s string) string { return s }})
		if got := b.String(); err == nil && got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		} else if err != nil && (b.Len() > 0 || !errors.Is(err, contextstore.ErrNotFound) && !errors.Is(err, os.ErrNotExist)) {
			t.Error(err) // one that never rests is not found, and nothing is printed of it
		}
	}
	close(stop)
	moved.Wait()
}

// A patch with a secret does not leave.
func TestAPatchWithASecretIsNotExported(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	var b bytes.Buffer
	o := ExportOptions{Format: FormatSWEBench, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") }, Patch: []byte("+hunter2\n")}
	if err := Export(&b, base, uuid, o); err == nil || b.Len() > 0 {
		t.Errorf("%v, %s", err, &b)
	}
	o.Patch = []byte("+x\n")
	if got, want := exported(t, base, uuid, o), fmt.Sprintf("%s\n", `{"instance_id":"notfolder__coding_agent-27","model_name_or_path":"openai/gpt-4o","model_patch":"+x\n"}`); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
