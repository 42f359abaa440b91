package agent

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
)

func newReviewer(t *testing.T) *reviewer {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return &reviewer{r: &run{Agent: &Agent{Store: s}, ledger: c}, change: readPatch(t)}
}

// hand hands in what a model wrote as arguments, and says what the review is then.
func (v *reviewer) hand(t *testing.T, raw string) string {
	t.Helper()
	own := v.tool()
	reader, err := tool.NewArguments(own.Definition())
	if err != nil {
		t.Fatal(err)
	}
	args, _, problem := reader.Read(raw)
	if problem != "" {
		return problem
	}
	result, err := own.Call(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	if result.IsError {
		return result.Text
	}
	all := []string{v.done.Verdict}
	for _, f := range v.done.Findings {
		suggested := ""
		if f.Suggestion != nil {
			suggested = fmt.Sprintf(" %q", *f.Suggestion)
		}
		all = append(all, fmt.Sprintf("%s:%d-%d %s %s|%s%s", f.Path, f.Line, f.EndLine, f.Severity, f.Title, f.Body, suggested))
	}
	return strings.Join(all, "\n")
}

// What a small model means is taken at once.
func TestAReviewAsMeant(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"verdict":"No.","findings":[{"path":"/workspace/new.go","line":"12","severity":"High","title":"a","body":"b","suggestion":""}]}`: "No.\nnew.go:12-12 major a|b",
		`{"summary":"No.","issues":[{"file":"./new.go","line":"L42","severity":"warning","description":"It breaks.\nSee."}]}`:              "No.\nnew.go:42-42 minor It breaks.|It breaks.\nSee.",
		`{"verdict":"No.","findings":{"path":"new.go","line":41,"end_line":42,"title":"a","suggestion":"` + "```go\\n\\ty()\\n```" + `"}}`: "No.\nnew.go:41-42 minor a|a \"\\ty()\\n\"",
		`{"verdict":"","findings":[]}`:                                                "verdict: minLength",
		`{"verdict":"No.","findings":[{"path":"new.go","line":12}]}`:                  "findings[0]: title and body are missing.",
		`{"verdict":"No.","findings":[{"path":"/x/y/new.go","line":12,"title":"a"}]}`: `"/x/y/new.go" is no file of the change`,
	} {
		if got := newReviewer(t).hand(t, raw); !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", raw, got, want)
		}
	}
}

// That a finding stands on no line of the change is said once.
func TestAFindingOutsideOfTheChange(t *testing.T) {
	t.Parallel()
	v := newReviewer(t)
	const raw = `{"verdict":"No.","findings":[{"path":"new.go","line":99,"severity":"minor","title":"a","body":"b"}]}`
	if got := v.hand(t, raw); !strings.Contains(got, "line 99 of new.go is none that the change shows") {
		t.Error(got)
	}
	if got := v.hand(t, raw); got != "No.\nnew.go:99-99 minor a|b" || v.misplaced(&v.done.Findings[0]) == "" {
		t.Error(got)
	}
}

// A review in the text of an answer is handed in by it.
func TestAReviewSaidAsText(t *testing.T) {
	t.Parallel()
	v := newReviewer(t)
	d := reviewDirector{director{r: v.r}, v}
	for text, want := range map[string]string{
		"Here it is:\n```json\n{'verdict': 'No.', \"findings\": [],}\n```\nBye.": `{"verdict": "No.", "findings": []}`,
		"{\"findings\":[],\"verdict\":\"Yes.\"}":                                 `{"findings":[],"verdict":"Yes."}`,
		"It can be merged. {\"verdict\": 1}":                                     "",
		"{\"verdict\":\"No.\",\"findings\":[{\"path\":\"new":                     "",
	} {
		r := llm.Reply{Message: llm.Message{Content: text}, FinishReason: llm.FinishStop}
		d.Read(&r)
		got := ""
		if len(r.Message.ToolCalls) > 0 {
			got = r.Message.ToolCalls[0].Arguments
		}
		if got != want || (r.FinishReason == llm.FinishToolCalls) != (want != "") || want != "" && strings.Contains(r.Message.Content, "verdict") {
			t.Errorf("%s: %s, %+v", text, got, r)
		}
	}
}
