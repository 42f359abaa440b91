package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// sent is what a conversation would send.
func sent(t *testing.T, w *Window) (all []llm.Message) {
	t.Helper()
	b := bytes.TrimSuffix(w.Conversation().Serialized(), []byte(","))
	if err := json.Unmarshal(append(append([]byte("["), b...), ']'), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Whichever messages are lost, what follows them is shown, the model is told
// which they are, and no provider is sent a call without its result or a result
// without its call.
func TestMessagesThatAreLost(t *testing.T) {
	t.Parallel()
	whole := &ledger{}
	put := func(m contextstore.Message) {
		m.Seq = int64(len(whole.msgs) + 1)
		m.Offset = m.Seq * 100
		whole.msgs = append(whole.msgs, m)
	}
	put(contextstore.Message{Role: llm.RoleSystem, Content: "rules"})
	put(contextstore.Message{Role: llm.RoleUser, Content: "request"})
	for n := range 3 {
		a, b := redact.Opaque(fmt.Sprint("a", n)), redact.Opaque(fmt.Sprint("b", n))
		put(contextstore.Message{Role: llm.RoleAssistant, Content: "works", ToolCalls: []contextstore.ToolCall{{ID: a, Name: "shell"}, {ID: b, Name: "shell"}}})
		put(contextstore.Message{Role: llm.RoleTool, ToolCallID: a, ToolName: "shell", Content: fmt.Sprint("result a", n)})
		put(contextstore.Message{Role: llm.RoleTool, ToolCallID: b, ToolName: "shell", Content: fmt.Sprint("result b", n)})
	}
	put(contextstore.Message{Role: llm.RoleUser, Content: "a remark"})
	put(contextstore.Message{Role: llm.RoleAssistant, Content: "done"})
	last := len(whole.msgs)
	for from := 3; from < last; from++ {
		for to := from; to < last; to++ {
			l := &ledger{msgs: slices.Concat(whole.msgs[:from-1], whole.msgs[to:])}
			w := window(t, l, Policy{Limit: 100_000})
			all := sent(t, w)
			lost := ref(int64(from))
			if to > from {
				lost += " to " + ref(int64(to))
			}
			open, notices, shown := map[string]bool{}, 0, 0
			for _, m := range all {
				if m.Role == llm.RoleTool {
					if !open[m.ToolCallID] {
						t.Errorf("%s: a result of nothing: %+v", lost, m)
					}
					delete(open, m.ToolCallID)
				} else if len(open) > 0 {
					t.Errorf("%s: a call without a result before %+v", lost, m)
				}
				for _, c := range m.ToolCalls {
					open[c.ID] = true
				}
				if strings.Contains(m.Content, "are lost here, "+lost+":") {
					notices++
				}
				for _, kept := range l.msgs {
					if m.Content == kept.Content || m.Role == llm.RoleUser && strings.Contains(m.Content, "<result>\n"+kept.Content+"\n") {
						shown++
						break
					}
				}
			}
			if notices != 1 || shown != len(l.msgs) {
				t.Errorf("%s: %d notices, %d of %d messages shown", lost, notices, shown, len(l.msgs))
			}
			// A run that goes on sends what one that is taken up again does.
			put := &ledger{msgs: slices.Clone(l.msgs[:2])}
			live := window(t, put, Policy{Limit: 100_000})
			for _, m := range l.msgs[2:] {
				put.msgs = append(put.msgs, m)
				live.Add(m)
			}
			if !bytes.Equal(live.Conversation().Serialized(), w.Conversation().Serialized()) || live.Tokens() != w.Tokens() {
				t.Errorf("%s: live\n%s\nresumed\n%s", lost, live.Conversation().Serialized(), w.Conversation().Serialized())
			}
		}
	}
}

// What a decision leaves in view begins behind what was dropped, which is no loss.
func TestADecisionIsNoHole(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w := window(t, l, Policy{Limit: 4_000})
	for range 30 {
		story(l, w, 1, 700)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.events) == 0 {
		t.Fatal("nothing was decided")
	}
	for _, m := range sent(t, window(t, l, Policy{Limit: 4_000})) {
		if strings.Contains(m.Content, "are lost here") {
			t.Errorf("%+v", m)
		}
	}
}
