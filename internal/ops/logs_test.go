package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/contextstore"
)

// aRun puts a run of a user into a status directory.
func aRun(t *testing.T, base, dir, uuid, user, status string) string {
	t.Helper()
	at := filepath.Join(base, dir, uuid)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(at, "metadata.json"), fmt.Sprintf(`{"uuid":%q,"task_key":{"task_source":"github","owner":"o","repo":"r","task_type":"issue","task_id":"1"},"created_at":"2024-01-15T10:30:00Z","user":%q,"format":1}`, uuid, user))
	put(t, filepath.Join(at, "state.json"), fmt.Sprintf(`{"status":"processing","started_at":"2024-01-15T10:30:01Z","updated_at":"2024-01-15T10:31:00Z","task_status":%q,"generation":1,"process_id":7,"error":null}`, status))
	return at
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

const (
	runA, runB = "550e8400-e29b-41d4-a716-446655440000", "660e8400-e29b-41d4-a716-446655440000"
	aTool      = `{"seq":%d,"tool":"shell","args":{},"status":"success","duration_ms":5,"timestamp":"2024-01-15T10:30:0%dZ"}` + "\n"
	anAnswer   = `{"seq":%d,"role":"assistant","content":"I look.\nThen more","timestamp":"2024-01-15T10:30:0%dZ","tokens":4,"usage":{"prompt_tokens":200,"completion_tokens":50}}` + "\n"
)

// times are those of the lines, in whatever zone.
var times = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d `)

func texts(b *bytes.Buffer) string { return times.ReplaceAllString(b.String(), "") }

// Each line of the files is told once, in the order of time, when it is whole; so is an owner that
// is gone, and an end.
func TestALogFollowsItsFiles(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := aRun(t, base, "running", runA, "ken", "running")
	add(t, filepath.Join(dir, "messages.jsonl"), fmt.Sprintf(anAnswer, 1, 2)+"no line\n"+fmt.Sprintf(anAnswer, 2, 6))
	half := fmt.Sprintf(aTool, 2, 7)
	add(t, filepath.Join(dir, "tools.jsonl"), fmt.Sprintf(aTool, 1, 4)+half[:20])
	var out bytes.Buffer
	h := LogsOptions{Redact: func(s string) string { return strings.ReplaceAll(s, "I look", "I [SECRET]") }}.handler(&out)
	r := tracked{uuid: runA, sources: sources()}
	look := func(ended bool) string {
		t.Helper()
		out.Reset()
		v, err := r.open(base)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.tell(t.Context(), h, v); err != nil || e != ended {
			t.Fatal(e, err)
		}
		return texts(&out)
	}
	const id = " [uuid:550e8400] "
	want := "INFO" + id + "Task queued: github/o/r#1 by=ken\n" + "INFO" + id + "Task started: github/o/r#1 generation=1\n" +
		"INFO" + id + `LLM call #1: 250 tokens said="I [SECRET]."` + "\n" + "INFO" + id + "Tool execution: shell status=success ms=5\n" +
		"INFO" + id + `LLM call #2: 250 tokens said="I [SECRET]."` + "\n" + "WARN" + id + "The owner of the run is gone pid=7\n"
	if got := look(false); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := look(false); got != "" {
		t.Errorf("told twice: %s", got)
	}
	add(t, filepath.Join(dir, "tools.jsonl"), half[20:])
	add(t, filepath.Join(dir, "checks.jsonl"), `{"seq":1,"round":1,"command":"go test","exit_code":2,"duration_ms":7,"timestamp":"2024-01-15T10:30:08Z"}`+"\n")
	want = "INFO" + id + "Tool execution: shell status=success ms=5\n" + "INFO" + id + `Check failed: go test round=1 exit=2 ms=7` + "\n"
	if got := look(false); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if err := os.MkdirAll(filepath.Join(base, "completed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, filepath.Join(base, "completed", runA)); err != nil {
		t.Fatal(err)
	}
	dir = aRun(t, base, "completed", runA, "ken", "failed")
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "state.json"), strings.Replace(string(state), `"error":null`, `"error":"too hard"`, 1))
	if got, want := look(true), "ERROR"+id+"Task failed: too hard\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Somebody who follows all runs is told of those that they may see, from then on.
func TestTailShowsWhatTheViewerMaySee(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	a, b := aRun(t, base, "running", runA, "ken", "running"), aRun(t, base, "running", runB, "hanako", "running")
	for _, dir := range []string{a, b} {
		add(t, filepath.Join(dir, "tools.jsonl"), fmt.Sprintf(aTool, 1, 4))
	}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			ended <- TailRuns(ctx, &out, base, LogsOptions{JSON: true, Redact: func(s string) string { return s }, Every: time.Second, Viewer: contextstore.Viewer{User: "Hanako"}})
		}()
		synctest.Wait()
		for _, dir := range []string{a, b} {
			add(t, filepath.Join(dir, "tools.jsonl"), fmt.Sprintf(aTool, 2, 5))
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var said []string
		for line := range strings.Lines(out.String()) {
			var r struct{ Level, Msg, UUID string }
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.UUID != runB {
				t.Errorf("%v: %s", err, line)
			}
			said = append(said, r.Level+" "+r.Msg)
		}
		if got, want := strings.Join(said, "; "), slog.LevelWarn.String()+" The owner of the run is gone; INFO Tool execution: shell"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
