package tool

import (
	"bytes"
	"io"

	"toritsugi/internal/checks"
)

// terminal passes on what a command prints as it would stand on a screen: without
// colours, and without what was written over. A line that has either waits for its
// end.
type terminal struct {
	out  io.Writer
	held []byte
}

// maxHeld is how long a line may be that waits for its end, in bytes.
const maxHeld = 64 << 10

// Write fails only where out does.
func (t *terminal) Write(p []byte) (int, error) {
	if len(t.held) == 0 && !bytes.ContainsAny(p, "\x1b\r") {
		_, err := t.out.Write(p)
		return len(p), err
	}
	t.held = append(t.held, p...)
	end := bytes.LastIndexByte(t.held, '\n') + 1
	if end == 0 && len(t.held) < maxHeld {
		return len(p), nil
	}
	if end == 0 {
		end = len(t.held)
	}
	return len(p), t.pass(end)
}

// pass makes the first n bytes of what is held plain.
func (t *terminal) pass(n int) error {
	var plain []byte
	for line := range bytes.Lines(t.held[:n]) {
		text, end := bytes.CutSuffix(line, []byte("\n"))
		if bytes.ContainsAny(text, "\x1b\r") && !isCRLF(text) {
			text = []byte(checks.Plain(string(text)))
		}
		plain = append(plain, text...)
		if end {
			plain = append(plain, '\n')
		}
	}
	t.held = append(t.held[:0], t.held[n:]...)
	if len(plain) == 0 {
		return nil
	}
	_, err := t.out.Write(plain)
	return err
}

// isCRLF reports a line whose only such byte is half of its end.
func isCRLF(text []byte) bool {
	return bytes.IndexAny(text, "\x1b\r") == len(text)-1 && text[len(text)-1] == '\r'
}

// flush passes on a last line without an end.
func (t *terminal) flush() error { return t.pass(len(t.held)) }
