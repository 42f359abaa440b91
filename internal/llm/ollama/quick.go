package ollama

import (
	"bytes"

	"toritsugi/internal/llm/wire"
)

// How Ollama writes the lines that come by the thousand, in this order.
// Source: api.ChatResponse, as encoding/json writes it.
const (
	lineModel    = `{"model":"`
	lineCreated  = `","created_at":"`
	lineContent  = `","message":{"role":"assistant","content":"`
	lineThinking = `,"thinking":"`
	lineEnd      = `},"done":false}`
)

// lineHead reads the start of a line, up to the time that it was made at, which
// all lines of one answer have in common. It is nil where data begin in another way.
func lineHead(data []byte) (model string, head []byte) {
	rest, found := bytes.CutPrefix(data, []byte(lineModel))
	if !found {
		return "", nil
	}
	model, n, ok := wire.QuickString(rest)
	if !ok || !bytes.HasPrefix(rest[n-1:], []byte(lineCreated)) {
		return "", nil
	}
	return model, bytes.Clone(data[:len(lineModel)+n-1+len(lineCreated)])
}

// quickLine reads a line that begins with head and adds text, thoughts or
// nothing. ok is false for every other line and form; those are decoded.
func quickLine(data, head []byte) (content, thinking string, ok bool) {
	rest, found := bytes.CutPrefix(data, head)
	if !found || head == nil {
		return "", "", false
	}
	n := 0
	for n < len(rest) && ('+' <= rest[n] && rest[n] <= ':' || rest[n] == 'T' || rest[n] == 'Z') { // a time
		n++
	}
	if rest, found = bytes.CutPrefix(rest[n:], []byte(lineContent)); !found {
		return "", "", false
	}
	if content, n, ok = wire.QuickString(rest); !ok {
		return "", "", false
	}
	rest = rest[n:]
	if thought, found := bytes.CutPrefix(rest, []byte(lineThinking)); found {
		if thinking, n, ok = wire.QuickString(thought); !ok {
			return "", "", false
		}
		rest = thought[n:]
	}
	return content, thinking, string(rest) == lineEnd
}
