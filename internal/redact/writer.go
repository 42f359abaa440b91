package redact

import (
	"io"
	"strings"
)

const (
	// maxHeld is how much a Writer holds back to see a secret whole, in bytes;
	// it is more where a known value is very long.
	maxHeld = 128 << 10
	// margin is how far from the end of what it holds a Writer cuts: what
	// begins within it may not have ended yet, so that it is not told apart.
	margin = 4 << 10
	// context is how far before a secret stands what makes it one, such as
	// "Authorization: Bearer " or the name of a password.
	context = 256
)

// Writer returns a writer that masks what passes through it to w, with the same
// result however the text is split into writes: what String returns for a text
// of at most 128 KiB, and for the pieces, cut between secrets and where possible
// between lines, of a longer one. It holds no more than one piece; Close writes
// what is held back and does not close w. After an error every call fails.
func (z *Sanitizer) Writer(w io.Writer) io.WriteCloser {
	longest := 0
	if known := z.values(); known != nil {
		longest = known.longest
	}
	return &writer{z: z, w: w, size: maxHeld + 2*longest, last: maxHeld + longest - margin}
}

type writer struct {
	z       *Sanitizer
	w       io.Writer
	size    int
	last    int // before which what is held is cut
	held    []byte
	swallow bool // what was written ends with a mask whose secret goes on
	err     error
}

func (w *writer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && w.err == nil; {
		if w.swallow {
			n := 0
			for n < len(rest) && is(rest[n], token|b64) {
				n++
			}
			rest = rest[n:]
			w.swallow = len(rest) == 0
			continue
		}
		n := min(len(rest), w.size-len(w.held))
		w.held = append(w.held, rest[:n]...)
		rest = rest[n:]
		if len(w.held) == w.size {
			w.cut()
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// cut writes the beginning of what is held, which is full.
func (w *writer) cut() {
	text := view(w.held)
	spans := w.z.find(text, true)
	if len(spans) > 0 {
		spans = settle(spans, text)
	}
	end := place(text, spans, w.last)
	w.swallow = end == len(text)
	if len(spans) > 0 && spans[0].start < end {
		w.flush(end)
		return
	}
	w.pass(w.held[:end])
	w.held = append(w.held[:0], w.held[end:]...)
}

// place returns where to cut a text before last, so that no secret is cut in
// two nor from the name that makes it one; len(s) where one secret fills it all.
// Only the text decides.
func place(s string, spans []span, last int) int {
	least := len(s) / 8
	// A name stands on the line of its value.
	free := last
	for i := len(spans) - 1; i >= -1; i-- {
		from := least
		if i >= 0 {
			from = max(spans[i].end, least)
		}
		if from < free {
			if n := strings.LastIndexByte(s[from:free], '\n'); n >= 0 {
				return from + n + 1
			}
		}
		if i >= 0 {
			free = min(free, spans[i].start)
		}
	}
	// One long line.
	free = last
	for i := len(spans) - 1; i >= -1; i-- {
		from := least
		if i >= 0 {
			from = max(spans[i].end, least)
		}
		if from < free {
			for at := free; at > max(from, free-context); at-- {
				if !is(s[at-1], token|b64|local) {
					return at
				}
			}
			return free
		}
		if i >= 0 {
			free = min(free, spans[i].start-context)
		}
	}
	// Secret upon secret.
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].end >= least && spans[i].end <= last {
			return spans[i].end
		}
	}
	for _, p := range spans {
		if p.end > last {
			return p.end
		}
	}
	return last
}

func (w *writer) flush(n int) {
	if n > 0 {
		w.pass(w.z.Bytes(w.held[:n]))
		w.held = append(w.held[:0], w.held[n:]...)
	}
}

func (w *writer) pass(p []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(p)
	}
}

// Close writes what is held back.
func (w *writer) Close() error {
	w.flush(len(w.held))
	return w.err
}
