package memory

import (
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
)

// What people say while a run works, and may say, stays in view when the
// messages around it become a summary or are dropped (DESIGN §3, pinned
// snapshot). Bounds of that: the latest maxKept messages are shown; their texts
// whole as far as they have no more bytes together than the window has tokens,
// about a quarter of it, the latest first; of the others the beginning and the
// end, and a reference. Of what is older the number is told.
const (
	maxKept   = 32
	leastKept = 240 // bytes that are shown of a message, at the least
)

// keep notes in e which messages stay in view of those that it lets leave:
// entries from to to, the latter excluded, and those that were kept before.
func (w *Window) keep(e *contextstore.WindowEvent, from, to int) {
	all := append([]contextstore.Kept(nil), e.Kept...)
	for _, m := range w.entry[from:max(to, from)] {
		if m.pinned {
			all = append(all, contextstore.Kept{Seq: m.seq, Offset: m.offset, Bytes: m.bulk})
		}
	}
	if over := len(all) - maxKept; over > 0 {
		e.KeptLess += int64(over)
		all = all[over:]
	}
	room := w.cap
	for i := len(all) - 1; i >= 0; i-- {
		k := &all[i]
		k.Shown = 0
		if room -= k.Bytes; room < 0 {
			k.Shown = max(leastKept, w.cap/maxKept/4)
		}
	}
	e.Kept = all
}

// kept is what the model is shown of the messages that an event keeps, "" where
// there are none.
func (w *Window) kept(e contextstore.WindowEvent) (string, error) {
	return kept(w.ledger.Messages, e, w.view)
}

// kept reads the messages that an event keeps; view is how each is shown.
func kept(messages func(offset int64, f func(contextstore.Message) bool) error, e contextstore.WindowEvent, view func(contextstore.Message) contextstore.Message) (string, error) {
	if len(e.Kept) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString("[What people said while you worked, word for word. It holds, whatever else is shown or not.")
	if e.KeptLess > 0 {
		fmt.Fprintf(&b, " Before %s they said more: %s that the recall tool shows by their references.", ref(e.Kept[0].Seq), counted(int(e.KeptLess), "message"))
	}
	b.WriteString("]\n")
	for _, k := range e.Kept {
		found := false
		err := messages(k.Offset, func(m contextstore.Message) bool {
			if found = m.Seq == k.Seq; found {
				if m = view(m); k.Shown > 0 {
					m = clipped(m, k.Shown)
				}
				fmt.Fprintf(&b, "\n[%s]\n%s\n", ref(m.Seq), strings.TrimRight(m.Content, "\n"))
				if n := len(m.Images); n > 0 {
					fmt.Fprintf(&b, "[%s; recall ref %s]\n", counted(n, "image"), ref(m.Seq))
				}
			}
			return false
		})
		if err != nil {
			return "", fmt.Errorf("read message %d, which is kept in view: %w", k.Seq, err)
		}
		if !found {
			fmt.Fprintf(&b, "\n[%s is missing or damaged]\n", ref(k.Seq))
		}
	}
	return b.String(), nil
}
