package job

import (
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
)

const (
	maxShown = 60 // characters of a call's arguments
	// lastLines is in how many lines the latest answer of a model is looked for: its
	// calls' results follow it.
	lastLines = 8
)

// called says which call a model makes in its nth answer.
func called(l i18n.Lang, n int64, c contextstore.ToolCall) string {
	return l.T("job.progress", n, strings.TrimSpace(c.Name+" "+progress.OneLine(progress.Cut(c.Arguments, maxShown))))
}

// Stage says how far a job is that another process works on, by what is on disk.
func Stage(v contextstore.View, o order.Chat, l i18n.Lang) string {
	if j, err := approval.Read(v.Dir); err == nil && j.State.Status.Approved() {
		if a, err := approval.ReadApplication(v.Dir, j.Job); err == nil && a.Begun {
			return l.T("job.applying_step", string(a.Step), o.Title)
		}
		return l.T("job.applying", o.Title)
	}
	said, n := l.T("job.begins", o.Title), v.State.LLMCallCount
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
