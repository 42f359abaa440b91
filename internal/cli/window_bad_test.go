package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// A run goes on whatever it meets: an earlier run whose summary is torn, calls
// that are larger than the window, a summariser that fails in every way it can, a
// kill that leaves half a summary; and tori memory tells the truth about it.
func TestARunGoesOnUponBadInput(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	const turns, killedAt = 50, 30
	gate, reached := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var asked atomic.Int64 // of the summariser
	bad := []llmtest.Answer{{Text: " \n"}, {Text: "[LLM error: request failed]"}, {Status: 500, Text: "boom"}, {Text: strings.Repeat("Ошибка исправлена в файле. ", 9)}, {Text: strings.Repeat("longer ", 30_000)}}
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if len(r.Tools) == 0 {
			if n := int(asked.Add(1)); n <= len(bad) {
				return bad[n-1]
			}
			return llmtest.Answer{Text: "Work went on in " + strings.Join(kept(*r.Messages[0].Content), " ")}
		}
		if r.Number >= killedAt { // whichever of them is not the summariser's
			once.Do(func() { close(reached) })
			<-gate
		}
		if r.Number == 1 || r.Number >= turns {
			return llmtest.Answer{Text: fmt.Sprint("Done after request ", r.Number)}
		}
		size := 1500
		if r.Number%20 == 5 {
			size = 90_000 // more than twice the window
		}
		args, _ := json.Marshal(map[string]string{"path": "notes.txt", "content": fmt.Sprint(r.Number, strings.Repeat("狐<&>", size/6))})
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint("call_of_", r.Number), Name: "write_file", Arguments: string(args)}}}
	})
	h := newHouse(t, server.URL, "")
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test, context_length: 16000}", server.URL),
		"checks: []\ncontext_storage: {compression_threshold: 0.3, masking: {enabled: false}}")
	h.ends(exitOK, "^completed: ", h.args...)
	tear(t, filepath.Join(h.only().Dir, "summaries.jsonl"))
	p := h.start(h.args...)
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("the run ended before it was to be killed: %v\n%s", err, p.out.String())
	}
	_ = p.Process.Kill()
	<-ended
	close(gate)
	v := runs(t, h.base())[1]
	if second := first(t, v, 2)[1]; second.Role != llm.RoleUser {
		t.Errorf("inherited out of a torn file: %s", second.Content)
	}
	tear(t, filepath.Join(v.Dir, "summaries.jsonl"))
	h.ends(exitOK, "^completed: ", append([]string{"run", "--resume", v.Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	v = runs(t, h.base())[1]
	if v.State.Failures != int64(len(bad)) || v.State.CompressionCount == 0 {
		t.Errorf("%d failures, %d compressions", v.State.Failures, v.State.CompressionCount)
	}
	kinds := map[string]int{}
	by := answered(t, v, server.Requests())
	for _, seq := range slices.Sorted(maps.Keys(by)) {
		s := screenOf(t, v.Metadata.UUID, "--base-dir", h.base(), "--at", fmt.Sprint(seq))
		s.same(t, by[seq])
		if s.Tokens > 11_200 {
			t.Errorf("message %d: a request of about %d tokens", seq, s.Tokens)
		}
		for _, d := range s.Decisions {
			kinds[d.Type]++
		}
	}
	if kinds[contextstore.WindowSummary] == 0 || kinds[contextstore.WindowTruncate] == 0 || kinds[contextstore.WindowClip] == 0 {
		t.Errorf("%v", kinds)
	}
	if code, out, errs := inProcess(i18n.English, "check", "--base-dir", h.base()); code != exitDamage && code != 0 || strings.Contains(out, v.Metadata.UUID) {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
}

// kept are the identifiers that a summary is asked to keep.
func kept(prompt string) (ids []string) {
	for line := range strings.Lines(prompt) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// tear puts the beginning of a line at the end of a file.
func tear(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(`{"id":99,"start_seq":3,"end_seq":9,"summary":"half a li`)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
