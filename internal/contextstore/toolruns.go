package contextstore

import (
	"encoding/json"

	"toritsugi/internal/contextstore/jsonl"
)

// AppendTools writes finished calls to tools.jsonl. They are not synced; after
// a power cut they can be mended from the messages (PROTOCOL "Turn" 3). Source:
// store-v3 §4.4 add_tool_call.
func (c *Context) AppendTools(runs ...ToolRun) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	buf, seq := c.buf[:0], c.tools.seq
	for _, r := range runs {
		seq++
		r.Seq, r.Timestamp = seq, c.store.now()
		r = c.redactRun(r)
		var err error
		if buf, err = jsonl.Append(buf, r); err != nil {
			return err
		}
	}
	c.keep(buf)
	if err := c.write(c.tools, buf, false); err != nil {
		return err
	}
	c.tools.seq = seq
	c.state.ToolCallCount += int64(len(runs))
	return nil
}

func (c *Context) redactRun(r ToolRun) ToolRun {
	r.Tool, r.Result, r.Error, r.CallID = c.clean(r.Tool), c.clean(r.Result), c.clean(r.Error), opaque(r.CallID)
	r.Args = c.store.redactArgs(r.Args)
	return r
}

// redactArgs keeps args JSON: what is no JSON, or stops being JSON by
// redaction, is stored as a string.
func (s *Store) redactArgs(args json.RawMessage) json.RawMessage {
	clean := jsonl.Valid(s.Redact(string(args)))
	if json.Valid([]byte(clean)) {
		return json.RawMessage(clean)
	}
	text, _ := json.Marshal(clean)
	return text
}

// LastTools returns up to n of the latest tool runs, latest first. A line that
// is none is passed over.
func (c *Context) LastTools(n int) ([]ToolRun, error) {
	if n <= 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs []ToolRun
	err := jsonl.Back(c.tools, c.tools.Size(), func(_ int64, b []byte) bool {
		if r, err := DecodeToolRun(b); err == nil {
			runs = append(runs, r)
		}
		return len(runs) < n
	})
	return runs, err
}
