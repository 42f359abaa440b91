package memory

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// hole is a stretch of messages whose lines cannot be read.
type hole struct{ from, to int64 }

// lostResult stands for the result of a call that is in a hole.
const lostResult = "The result of this call is lost: its line in the files of the run is damaged. Look at what the call left before you repeat it."

// meet prepares the window for the next message and returns it as it is shown.
// Where messages before it are lost, the model is told, and what providers refuse
// does not arise: a call without a result gets one that says so, and a result
// whose call is lost is shown as text. All of it follows from the numbers of the
// messages, so that a resumed run serialises the same bytes.
func (w *Window) meet(m contextstore.Message) contextstore.Message {
	if w.after >= 0 && m.Seq > w.after+1 {
		w.holes = append(w.holes, hole{w.after + 1, m.Seq - 1})
		w.torn = true
	}
	w.after = m.Seq
	answers := m.Role == llm.RoleTool && slices.ContainsFunc(w.open, func(c contextstore.ToolCall) bool { return c.ID == m.ToolCallID })
	if len(w.holes) > 0 && !answers { // the other results come first
		for _, c := range w.open {
			w.remark(llm.Message{Role: llm.RoleTool, ToolCallID: string(c.ID), ToolName: c.Name, Content: lostResult, Failed: true})
		}
		w.open = nil
		w.tellHoles()
	}
	w.torn = w.torn && m.Role == llm.RoleTool
	view := w.view(m)
	if w.torn && !answers {
		view.Role, view.ToolCallID = llm.RoleUser, ""
		view.Content = fmt.Sprintf("[The result of a call of %s whose own message is lost.]\n%s", m.ToolName, llm.Around("result", view.Content))
	}
	return view
}

// tellHoles tells the model what is lost.
func (w *Window) tellHoles() {
	var lost []string
	for _, h := range w.holes {
		s := ref(h.from)
		if h.to > h.from {
			s += " to " + ref(h.to)
		}
		lost = append(lost, s)
		if h.to > w.told {
			w.told = h.to
			w.log.Warn("Messages of the run are lost: their lines in messages.jsonl cannot be read; tori check tells more", "from_seq", h.from, "to_seq", h.to)
		}
	}
	w.remark(llm.Message{Role: llm.RoleUser, Content: "[Messages of this run are lost here, " + strings.Join(lost, ", ") + ": their lines in its files are damaged. " +
		"What was done stands in the workspace: look at the files and at git diff before you go on, and do not take for done what you do not find.]"})
	w.holes = nil
}

// remark shows the model a message that stands for what is lost.
func (w *Window) remark(m llm.Message) {
	before := w.taken
	w.append(m)
	w.notes, w.noted = w.notes+1, w.noted.plus(w.taken.minus(before))
}
