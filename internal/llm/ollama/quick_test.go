package ollama

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// slowAnswer takes no line quickly.
type slowAnswer struct{ *answer }

func (a slowAnswer) Event(name string, data []byte) (bool, error) {
	if data[0] == '{' {
		data = append([]byte("{ "), data[1:]...) // the same in another form
	}
	return a.answer.Event(name, data)
}

// FuzzQuickLine: an answer whose lines are read quickly is the one whose lines
// are all decoded, also where they are none.
func FuzzQuickLine(f *testing.F) {
	plain := `{"model":"m:7b","created_at":"2026-11-21T08:00:00.123+09:00","message":{"role":"assistant","content":"` // as Ollama begins a line
	f.Add(plain + ` \"a\" 日本\u0041\n<"},"done":false}` + "\n" + plain + `b","thinking":"h\t"},"done":false}` + "\n" + done)
	f.Add(plain + `","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}` + "\n" + done)
	f.Add(plain + "\xff\"},\"done\":false}\n" + plain + "a\x01\"},\"done\":false}\n")
	f.Add(plain + `a"},"done":false,"error":"e"}` + "\n" + plain + `"},"done":false} x` + "\n")
	f.Add(`{"model":"","created_at":"","message":{"role":"assistant","content":"a"},"done":false}` + "\n" + plain + `b"},"done":false}` + "\n" + said + done)
	f.Add(`{"model":"m\"","created_at":"x"` + "\n" + plain + `b"},"done":false`)
	f.Fuzz(func(t *testing.T, body string) {
		read := func(slow bool) (text []string, a *answer, e *llm.Error) {
			a = &answer{maxSize: 1000, onText: func(s string) { text = append(text, s) }}
			var p wire.EventParser = a
			if slow {
				p = slowAnswer{a}
			}
			e, _ = wire.Format{MaxEvent: 1 << 20}.ReadLines(context.Background(), p, "", strings.NewReader(body))
			return text, a, e
		}
		text, a, e := read(false)
		text2, a2, e2 := read(true)
		if diff := cmp.Diff(text2, text); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
		if (e == nil) != (e2 == nil) || e != nil && e.Kind != e2.Kind {
			t.Errorf("%v, want %v", e, e2)
		}
		if a.reasoning.String() != a2.reasoning.String() || a.size != a2.size || e == nil && a.model != a2.model || len(a.calls) != len(a2.calls) {
			t.Errorf("got %+v, want %+v", a, a2)
		}
	})
}

// TestQuickLines: what Ollama writes is read quickly, the first line too.
func TestQuickLines(t *testing.T) {
	t.Parallel()
	body, want := streamed(100)
	n, text := 0, ""
	_, head := lineHead(body)
	for line := range bytes.Lines(body) {
		if content, _, ok := quickLine(bytes.TrimSpace(line), head); ok {
			n++
			text += content
		}
	}
	if n != 100 || text != want {
		t.Errorf("%d lines of 100", n)
	}
	thought := `{"model":"m","created_at":"2026-11-21T08:00:00Z","message":{"role":"assistant","content":"","thinking":"h\n"},"done":false}`
	model, head := lineHead([]byte(thought))
	if content, thinking, ok := quickLine([]byte(thought), head); model != "m" || content != "" || thinking != "h\n" || !ok {
		t.Errorf("%q, %q, %q, %v", model, content, thinking, ok)
	}
}
