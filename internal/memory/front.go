package memory

import (
	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// Front is how many messages at the beginning of a context never leave the
// window: the system prompt, what was inherited where there is something, and the
// request. second is the second message, the zero Message where there is none yet:
// before the request an assistant says nothing but what was inherited (inherit §4.3).
func Front(second contextstore.Message) int {
	if second.Role == llm.RoleAssistant {
		return pinned + 1
	}
	return pinned
}

// FirstMessages tells how far the first messages of a context are. A power cut may
// leave some of them.
type FirstMessages struct {
	Size  int  // how many there are once all of them are there: Front
	Heir  bool // what was inherited is among them
	Whole bool // the request, which is the last of them, is there
}

// ReadFirstMessages reads the first messages of a context.
func ReadFirstMessages(l interface {
	Messages(offset int64, f func(contextstore.Message) bool) error
}) (FirstMessages, error) {
	b := FirstMessages{Size: pinned}
	n := 0
	err := l.Messages(0, func(m contextstore.Message) bool {
		if n++; n == pinned {
			b.Size = Front(m)
			b.Heir = b.Size > pinned
		}
		b.Whole = n == b.Size
		return !b.Whole
	})
	return b, err
}
