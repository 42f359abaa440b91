package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/contextstore/jsonl"
)

// taskOnly marks a tool in its _meta that can only be called as a task, which the
// SDK does not know of.
const taskOnly = "toritsugi/task_only"

// taskless returns a list of tools with those marked that can only be called as a
// task; other results as they are.
func taskless(result json.RawMessage) json.RawMessage {
	var list struct {
		Tools []map[string]any `json:"tools"`
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(result, &list) != nil || json.Unmarshal(result, &whole) != nil {
		return result
	}
	found := false
	for _, t := range list.Tools {
		if how, _ := t["execution"].(map[string]any); how["taskSupport"] == "required" {
			t["_meta"], found = map[string]any{taskOnly: true}, true
		}
	}
	tools, err := jsonl.Marshal(list.Tools)
	if whole["tools"] = tools; !found || err != nil {
		return result
	}
	if mended, err := json.Marshal(whole); err == nil {
		return mended
	}
	return result
}

// readable returns a result with a note in the place of each piece of content
// that the SDK does not know or cannot read: it would refuse the whole result
// for it, and with it what the others say. It returns other results as they are.
func readable(result json.RawMessage) json.RawMessage {
	if bytes.Contains(result, []byte(`"taskSupport"`)) {
		result = taskless(result)
	}
	if !bytes.Contains(result, []byte(`"content"`)) || reads(result) {
		return result
	}
	var whole map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(result, &whole) != nil || json.Unmarshal(whole["content"], &blocks) != nil {
		return result
	}
	for i, b := range blocks {
		if one, err := json.Marshal(map[string]any{"content": []json.RawMessage{b}}); err == nil && !reads(one) {
			blocks[i] = note(b)
		}
	}
	content, err := json.Marshal(blocks)
	if err != nil {
		return result
	}
	whole["content"] = content
	if mended, err := json.Marshal(whole); err == nil && reads(mended) {
		return mended
	}
	return result
}

// reads reports whether the SDK can read a result.
func reads(result []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return json.Unmarshal(result, new(sdk.CallToolResult)) == nil
}

// shownKinds are the types of content that a result is shown of.
var shownKinds = map[string]bool{"text": true, "image": true, "audio": true, "resource_link": true, "resource": true}

// note is content that says what is left out in its place.
func note(block json.RawMessage) json.RawMessage {
	out, _ := json.Marshal(map[string]string{"type": "text", "text": leftOut(block)}) // texts cannot fail
	return out
}

// leftOut says for the model what a piece of content was.
func leftOut(block json.RawMessage) string {
	var b struct {
		Type any `json:"type"`
	}
	_ = json.Unmarshal(block, &b) // what cannot be read has no type
	name, _ := b.Type.(string)
	switch {
	case name == "":
		return fmt.Sprintf("[content without a type left out, %d bytes]", len(block))
	case shownKinds[name]:
		return fmt.Sprintf("[content of the type %s left out, which cannot be read: %d bytes]", name, len(block))
	}
	return fmt.Sprintf("[content of the unknown type %q left out, %d bytes]", line(name, 80), len(block))
}

// fewValues refuses a message of more values than a decoder should be given: each
// stands behind a bracket, a comma or a colon outside of texts (RFC 8259).
func fewValues(msg []byte) error {
	values, quoted := 0, false
	for i := 0; i < len(msg); i++ {
		switch c := msg[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[', c == ',', c == ':':
			values++
		}
	}
	if values > maxValues {
		return fmt.Errorf("it sent a message of more than %d values", maxValues)
	}
	return nil
}

// readableMessage is readable for a whole message.
func readableMessage(msg []byte) []byte {
	if !bytes.Contains(msg, []byte(`"content"`)) && !bytes.Contains(msg, []byte(`"taskSupport"`)) {
		return msg
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(msg, &m) != nil || m["result"] == nil {
		return msg
	}
	result := readable(m["result"])
	if bytes.Equal(result, m["result"]) {
		return msg
	}
	m["result"] = result
	if out, err := json.Marshal(m); err == nil {
		return out
	}
	return msg
}

// wholeBody is the body of one message, mended.
type wholeBody struct {
	io.ReadCloser
	mended *bytes.Reader
	err    error
}

// Read implements io.Reader.
func (b *wholeBody) Read(p []byte) (int, error) {
	if b.mended == nil {
		all, err := io.ReadAll(b.ReadCloser)
		if err == nil {
			err = fewValues(all)
		}
		if err == nil {
			all, err = readableMessage(all), io.EOF
		} else {
			all = nil
		}
		b.mended, b.err = bytes.NewReader(all), err
	}
	if b.mended.Len() == 0 {
		return 0, b.err
	}
	return b.mended.Read(p)
}

// eventBody is a stream of events, each mended and passed on at its end.
type eventBody struct {
	io.ReadCloser
	in   *bufio.Reader
	max  int64 // bytes of one event; a larger one is passed on for the SDK to refuse
	out  bytes.Buffer
	err  error
	raw  []byte // of the event under way
	from int    // where its last line begins
	data []byte // its data, the lines joined
	over bool   // it is too large
}

func newEventBody(body io.ReadCloser, limit int64) *eventBody {
	return &eventBody{ReadCloser: body, in: bufio.NewReader(body), max: limit}
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for b.out.Len() == 0 && b.err == nil {
		b.line()
	}
	if b.out.Len() > 0 {
		return b.out.Read(p)
	}
	return 0, b.err
}

// line takes in the next line, or as much of it as the reader holds.
func (b *eventBody) line() {
	part, err := b.in.ReadSlice('\n')
	b.raw = append(b.raw, part...)
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
		if int64(len(b.raw)) <= b.max && !b.over {
			return // the line goes on
		}
	}
	if b.err = err; b.over || int64(len(b.raw)) > b.max {
		b.over = true
		b.out.Write(b.raw)
		b.raw, b.from = b.raw[:0], 0
		return
	}
	line := bytes.TrimRight(b.raw[b.from:], "\r\n")
	b.from = len(b.raw)
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		b.data = append(append(b.data, bytes.TrimSpace(data)...), '\n')
	}
	if len(line) == 0 || err != nil {
		b.end()
	}
}

// end passes on the event that ends here.
func (b *eventBody) end() {
	data := bytes.TrimSpace(b.data)
	if err := fewValues(data); err != nil {
		b.err = err
		return
	}
	mended := readableMessage(data)
	if bytes.Equal(mended, data) {
		b.out.Write(b.raw)
	} else {
		for line := range bytes.Lines(b.raw) {
			if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 && !bytes.HasPrefix(text, []byte("data:")) {
				b.out.Write(text)
				b.out.WriteByte('\n')
			}
		}
		b.out.Write(append(append([]byte("data: "), mended...), "\n\n"...))
	}
	b.raw, b.data, b.from = b.raw[:0], b.data[:0], 0
}
