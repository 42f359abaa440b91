package job

import (
	"cmp"
	"encoding/json"
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
)

const (
	maxShown = 60 // characters of a call's arguments
	// lastLines is in how many lines the latest answer of a model is looked for: its
	// calls' results follow it.
	lastLines = 8
)

// calls are the words for what a model does, by the tool that it calls.
var calls = map[string]string{"read_file": "job.call_read", "list_files": "job.call_list", "grep": "job.call_search", proposeName: "job.call_propose",
	planning.ToolPlan: "job.call_plan", planning.ToolReport: "job.call_step", planning.ToolReflect: "job.call_check"}

// called says what a model does in its nth answer, in words: a person reads it.
func called(l i18n.Lang, n int64, c contextstore.ToolCall) string {
	var args struct{ Path, Pattern string }
	_ = json.Unmarshal([]byte(c.Arguments), &args) // what it cannot tell is not told
	about := cmp.Or(args.Pattern, args.Path, ".")
	key, known := calls[c.Name]
	switch {
	case !known:
		key, about = "job.call_other", c.Name
	case !strings.Contains(l.T(key), "%"):
		return l.T("job.progress", l.T(key), n)
	}
	return l.T("job.progress", l.T(key, progress.OneLine(progress.Cut(about, maxShown))), n)
}

// Stage says how far a job is that another process works on, by what is on disk.
func Stage(v contextstore.View, l i18n.Lang) string {
	if j, err := approval.Read(v.Dir); err == nil && j.State.Status.Approved() {
		if a, err := approval.ReadApplication(v.Dir, j.Job); err == nil && a.Begun {
			return l.T("job.applying_step", a.Step.Text(l))
		}
		return l.T("job.applying")
	}
	said, n := l.T("job.begins"), v.State.LLMCallCount
	_ = v.Tail(contextstore.Messages, lastLines, func(line []byte) error { // what cannot be read is not told
		m, err := contextstore.DecodeMessage(line)
		if err != nil || m.Role != llm.RoleAssistant {
			return nil
		}
		if m.Seq > v.State.MessageCount { // state.json comes behind
			n++
		}
		if len(m.ToolCalls) > 0 {
			said = called(l, n, m.ToolCalls[len(m.ToolCalls)-1])
		}
		return nil
	})
	return said
}
