package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// What people write into the comments file of a folder while a run works reaches
// that run; what they write too late reaches the next one, which is not told the
// rest again. What we wrote there is never told as people's.
func TestWhatIsSaidWhileAFolderRunWorks(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	var h *house
	says := func(text string, at time.Time) {
		f, err := os.OpenFile(filepath.Join(h.dir, "issue.comments.md"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString("\n## ken — " + at.UTC().Format(time.RFC3339) + "\n\n" + text + "\n")
		}
		if err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
	s := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch {
		case !strings.Contains(string(r.Raw), "FIRST WISH"): // a later run
			return llmtest.Answer{Text: "Nothing to do."}
		case r.Turn() == 0:
			says("SECOND WISH", time.Now())
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "read_file", Arguments: `{"path":"README.md"}`}}}
		}
		if !strings.Contains(string(r.Raw), "SECOND WISH") {
			t.Error("the run was not told what was said while it worked")
		}
		return llmtest.Answer{Text: "OUR WORDS."}
	})
	h = newHouse(t, s.URL, "")
	says("FIRST WISH", time.Now())
	began := time.Now()
	text := func(n int) string {
		t.Helper()
		if code := h.start(h.args...).code(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		all := runs(t, h.base())
		if len(all) != n {
			t.Fatalf("%d runs", len(all))
		}
		request := first(t, all[n-1], 3)
		for _, m := range request {
			if m.Role == llm.RoleUser {
				return m.Content
			}
		}
		return ""
	}
	if got := text(1); strings.Count(got, "WISH") != 1 {
		t.Errorf("the first run was told:\n%s", got)
	}
	if !strings.Contains(h.comment(), "OUR WORDS") {
		t.Fatal(h.comment())
	}
	says("THIRD WISH", began) // written while the run worked, saved when it had ended
	if got := text(2); !strings.Contains(got, "THIRD WISH") || strings.Count(got, "WISH") != 1 || strings.Contains(got, "OUR WORDS") || !strings.Contains(got, "\n2 comments that the earlier run was told") {
		t.Errorf("the second run was told:\n%s", got)
	}
	if got := text(3); strings.Contains(got, "WISH") || strings.Contains(got, "OUR WORDS") || !strings.Contains(got, "\n3 comments that the earlier run was told") {
		t.Errorf("the third run was told:\n%s", got)
	}
	b, err := readFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.write("config.yaml", string(b)+"context_inheritance: {enabled: false}\n")
	if got := text(4); strings.Count(got, "WISH") != 3 || strings.Contains(got, "OUR WORDS") || strings.Contains(got, "tori:\n") {
		t.Errorf("a run that inherits nothing was told:\n%s", got)
	}
}
