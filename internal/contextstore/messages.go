package contextstore

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"toritsugi/internal/disk"
)

// MessageLog reads messages.jsonl: the part of store-v3 §4.2's MessageStore
// that only reads. What a call reads of the file depends on its answer, not on
// how long the file is. It may be used by several goroutines, and while the
// owner appends: a call sees what was wholly written when it began.
//
// The numbers of messages rise in the file, as we write them: from 1, without
// gaps. For files of other hands: where numbers are missing the search is
// exact and Count is the last number; a number that stands there twice is given
// twice; where numbers fall, the search finds a place, not always the first,
// and every call still ends. A line that is no message (NULs, invalid JSON, no
// number or role) and a torn last line are passed over, which is no error.
// Invalid UTF-8 reads as U+FFFD in a Message, and raw lines are given as they
// stand, with fields that we do not know. A compressed log is unpacked into a
// file without a name when it is opened.
type MessageLog struct {
	ctx  *Context // nil where a View is read
	view View
	file disk.Plain // the View's, nil where it has no messages

	read atomic.Int64
}

// MessageLog returns a reader of what was appended so far. It borrows the
// context's file and fails once the context is closed.
func (c *Context) MessageLog() *MessageLog { return &MessageLog{ctx: c} }

// MessageLog opens the messages of a context that another process may own. The
// caller closes it. Without the file it reads as empty (store-v3 §11.2).
func (v View) MessageLog() (*MessageLog, error) {
	f, err := openExisting(v.Dir, Messages)
	if err != nil {
		return nil, err
	}
	return &MessageLog{view: v, file: f}, nil
}

// Close releases what the reader opened itself: nothing, where it came from a
// Context.
func (l *MessageLog) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// BytesRead is how much was read of the file since the reader was made.
func (l *MessageLog) BytesRead() int64 { return l.read.Load() }

// counted counts what is read of a file.
type counted struct {
	r io.ReaderAt
	n *atomic.Int64
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n.Add(int64(n))
	return n, err
}

// reader returns a reader of the whole lines that there are now.
func (l *MessageLog) reader() (*lineReader, error) {
	if l.ctx != nil {
		l.ctx.mu.Lock()
		defer l.ctx.mu.Unlock()
		return l.live(), nil
	}
	if l.file == nil {
		return &lineReader{}, nil
	}
	st, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	r := &lineReader{r: counted{l.file, &l.read}, end: st.Size()}
	return r, r.whole(func(b []byte) bool { _, err := DecodeMessage(b); return err == nil })
}

// live is reader of a Context. The caller holds its mu.
func (l *MessageLog) live() *lineReader {
	return &lineReader{r: counted{l.ctx.messages, &l.read}, end: l.ctx.messages.Size()}
}

// with calls f with a reader and says of its error where it came from.
func (l *MessageLog) with(f func(r *lineReader) error) error {
	r, err := l.reader()
	if err == nil {
		err = f(r)
	}
	return l.wrap(err)
}

func (l *MessageLog) wrap(err error) error {
	if err == nil {
		return nil
	}
	m := l.view.Metadata
	if l.ctx != nil {
		m = l.ctx.meta
	}
	return fmt.Errorf("read %s of %s: %w", Messages, m.UUID, err)
}

// at decodes the line that begins at off. A message without a number stands for
// a line that is none; only a line that looks like JSON is held in memory.
func (l *MessageLog) at(r *lineReader, off int64) (m Message, raw []byte, next int64, err error) {
	b, err := r.after(off)
	if err != nil || len(b) == 0 {
		return m, nil, r.end, err
	}
	if !candidate(b[0]) {
		next, err = r.behind(off, r.end)
		return m, nil, next, err
	}
	raw, next, err = r.line(off)
	if err != nil {
		return m, nil, next, err
	}
	m, err = DecodeMessage(raw)
	if err != nil {
		return Message{}, nil, next, nil
	}
	m.Offset = off
	return m, raw, next, nil
}

// forward calls f for each message from off on until f returns false.
func (l *MessageLog) forward(r *lineReader, off int64, f func(m Message, raw []byte) bool) error {
	for off < r.end {
		m, raw, next, err := l.at(r, off)
		if err != nil {
			return err
		}
		if m.Seq > 0 && !f(m, raw) {
			return nil
		}
		off = next
	}
	return nil
}

// backward calls f for each message before off, last first, until f returns
// false.
func (l *MessageLog) backward(r *lineReader, off int64, f func(m Message, raw []byte) bool) error {
	for off > 0 {
		start, err := r.start(off)
		if err != nil {
			return err
		}
		m, raw, _, err := l.at(r, start)
		if err != nil {
			return err
		}
		if m.Seq > 0 && !f(m, raw) {
			return nil
		}
		off = start
	}
	return nil
}

// Count is the number of the last message, 0 where there is none: for what we
// write, how many there are. Source: store-v3 §4.2 count_messages.
func (l *MessageLog) Count() (int64, error) {
	if l.ctx != nil {
		return l.ctx.LastSeq(), nil
	}
	m, err := l.Last()
	if m == nil || err != nil {
		return 0, err
	}
	return m.Seq, nil
}

// Last returns the latest message, nil where there is none.
func (l *MessageLog) Last() (*Message, error) {
	m, err := l.Recent(1)
	if len(m) == 0 {
		return nil, err
	}
	return &m[0], nil
}

// Recent returns the latest n messages, oldest of them first. An owner keeps
// max_memory_messages of them at hand; what is not among those is read from the
// end of the file. Source: store-v3 §4.2 load_recent_messages, store-v2 §4.1.
func (l *MessageLog) Recent(n int) (out []Message, err error) {
	if n <= 0 {
		return nil, nil
	}
	err = l.with(func(r *lineReader) error {
		if l.ctx != nil {
			l.ctx.mu.Lock()
			r.end, r.buf = l.ctx.messages.Size(), l.ctx.recent.tail(n)
			l.ctx.mu.Unlock()
			if r.at = r.end - int64(len(r.buf)); r.at < 0 { // no line before them
				r.at, r.buf = 0, r.buf[1:]
			}
		}
		return l.backward(r, r.end, func(m Message, _ []byte) bool { out = append(out, m); return len(out) < n })
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out)
	return out, nil
}

// Tail calls f with the latest n messages, oldest of them first, and their
// lines as they stand in the file, until f returns false. It holds one of them
// at a time; n < 0 gives all. raw is valid during the call only.
func (l *MessageLog) Tail(n int, f func(m Message, raw []byte) bool) error {
	if n == 0 {
		return nil
	}
	return l.with(func(r *lineReader) error {
		from := r.end
		if n < 0 {
			from = 0
		} else {
			left := n
			err := l.backward(r, r.end, func(m Message, _ []byte) bool { from = m.Offset; left--; return left > 0 })
			if err != nil {
				return err
			}
		}
		return l.forward(r, from, f)
	})
}

// Range calls f with the messages numbered from to to, both included, and their
// lines as they stand in the file, until f returns false. It holds one of them
// at a time. raw is valid during the call only.
func (l *MessageLog) Range(from, to int64, f func(m Message, raw []byte) bool) error {
	if from > to {
		return nil
	}
	return l.with(func(r *lineReader) error { return l.rangeOf(r, from, to, f) })
}

func (l *MessageLog) rangeOf(r *lineReader, from, to int64, f func(m Message, raw []byte) bool) error {
	off, err := seek(r, from)
	if err != nil {
		return err
	}
	return l.forward(r, off, func(m Message, raw []byte) bool {
		if m.Seq > to {
			return false
		}
		return m.Seq < from || f(m, raw)
	})
}

// OffsetOf returns where in messages.jsonl, in bytes, the first message begins
// whose number is at least seq; the end of the whole lines if there is none. A
// damaged line right before it may count as it, by the number at its head.
func (l *MessageLog) OffsetOf(seq int64) (offset int64, err error) {
	err = l.with(func(r *lineReader) error { offset, err = seek(r, seq); return err })
	return offset, err
}
