package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
)

// bulky is how many bytes a text must have for a stub to be worth its place.
const bulky = 150

// toolSource is how the source of an image begins that a tool brought.
const toolSource = "tool:"

// ref is the reference of a message, as the recall tool takes it.
func ref(seq int64) string { return "m-" + strconv.FormatInt(seq, 10) }

// masked is an old message as the model is shown it: its tool output, its bulky
// arguments and the images that a tool brought are stubs. What a provider wants
// back as it was stays.
func masked(m contextstore.Message) contextstore.Message {
	switch {
	case m.Role == llm.RoleTool && len(m.Content) >= bulky:
		m.Content = stub("tool output omitted", m.Content, m.Seq)
	case m.Role == llm.RoleAssistant && len(m.ToolCalls) > 0:
		m.ToolCalls = stubCalls(m.ToolCalls, bulky, m.Seq)
	case m.Role == llm.RoleUser && len(m.Images) > 0 && !slices.ContainsFunc(m.Images, notOfTool):
		m.Content += fmt.Sprintf("\n[%s omitted; recall ref %s]", counted(len(m.Images), "image"), ref(m.Seq))
		m.Images = nil
	}
	return m
}

func notOfTool(i contextstore.Image) bool { return !strings.HasPrefix(i.Source, toolSource) }

// stub is the line that stands for a text.
func stub(what, text string, seq int64) string {
	return "[" + what + ": " + counted(lines(text), "line") + ", " + amount(len(text)) + "; recall ref " + ref(seq) + "]"
}

// stubbed is how the stub of an argument begins.
const stubbed = "omitted"

// aStub is a stub as stub writes it, also where it was quoted as JSON.
var aStub = lazyregexp.New(`\[(?:tool output )?omitted: \d+ lines?, [0-9.]+ [KM]?B; recall ref m-\d+\]`)

// FindStub returns the first stub in a text, if there is one. A model may copy
// one out of an earlier call of its own; it is never to be written to a file.
func FindStub(s string) (string, bool) {
	if !strings.Contains(s, "; recall ref m-") {
		return "", false
	}
	found := aStub().FindString(s)
	return found, found != ""
}

// stubCalls are calls whose arguments of so many bytes and more are stubs. The
// calls themselves are not changed.
func stubCalls(calls []contextstore.ToolCall, most int, seq int64) []contextstore.ToolCall {
	out := slices.Clone(calls)
	for i := range out {
		if len(out[i].Arguments) >= most {
			out[i].Arguments = stubArguments(out[i].Arguments, most, seq)
		}
	}
	return out
}

// stubArguments replaces the long values of an object; what is no object is
// replaced whole, by one.
func stubArguments(arguments string, most int, seq int64) string {
	var b bytes.Buffer
	put := func(text string) {
		quoted, _ := jsonl.Marshal(text) // a text always can be
		b.Write(quoted)
	}
	b.WriteByte('{')
	err := members(arguments, func(name string, value json.RawMessage) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		put(name)
		b.WriteByte(':')
		var text string
		switch {
		case len(value) < most:
			b.Write(value)
		case json.Unmarshal(value, &text) == nil:
			put(stub(stubbed, text, seq))
		default:
			put(stub(stubbed, string(value), seq))
		}
	})
	if err != nil {
		b.Reset()
		b.WriteString(`{"arguments":`)
		put(stub(stubbed, arguments, seq))
	}
	b.WriteByte('}')
	if b.Len() >= len(arguments) {
		return arguments // many short ones
	}
	return b.String()
}

// members calls f for each member of a JSON object, in its order.
func members(object string, f func(name string, value json.RawMessage)) error {
	d := json.NewDecoder(strings.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("no object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || !ok {
			return errors.New("no object")
		}
		f(name, value)
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than an object")
	}
	return nil
}

// clipped is a message of which no more than so many bytes are shown, of its
// text and of each argument. Thinking that is longer is left out whole: what a
// provider signed cannot be cut, and clients make do without it.
func clipped(m contextstore.Message, most int) contextstore.Message {
	if m.Role == llm.RoleSystem {
		return m
	}
	if over := len(m.Content) - most; over > 0 {
		head, tail := whole(m.Content[:most/2]), tailOf(m.Content[len(m.Content)-most/2:])
		m.Content = llm.Shortened(m.Content, len(head), len(m.Content)-len(tail),
			fmt.Sprintf("[%d bytes of this message are not shown here; recall ref %s]", len(m.Content)-len(head)-len(tail), ref(m.Seq)))
	}
	if len(m.ToolCalls) > 0 {
		m.ToolCalls = stubCalls(m.ToolCalls, max(most, bulky), m.Seq)
	}
	if thinking(m) > most {
		m.Reasoning, m.Provider = "", ""
	}
	return m
}

// thinking is how many bytes of a message are what a model thought.
func thinking(m contextstore.Message) int { return len(m.Reasoning) + len(m.Provider) }

// whole is s without half a character at its end.
func whole(s string) string {
	for i := 0; i < utf8.UTFMax && len(s) > 0; i++ {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// tailOf is s without half a character at its beginning.
func tailOf(s string) string {
	for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(s[0]); i++ {
		s = s[1:]
	}
	return s
}

// bulk is how many bytes of a message can become stubs, or be cut.
func bulk(m contextstore.Message) int {
	n := len(m.Content)
	for _, c := range m.ToolCalls {
		n += len(c.Arguments)
	}
	return n
}

func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// amount is a number of bytes as people read it.
func amount(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " B"
	case n < 1000*1000:
		return strconv.Itoa(n/1000) + "." + strconv.Itoa(n%1000/100) + " KB"
	}
	return fmt.Sprintf("%d.%d MB", n/1_000_000, n%1_000_000/100_000)
}
