package contextstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore/jsonl"
)

// long is how many messages the long log has: about 150 MB.
const long = 1_000_000

// longLog writes the long log and returns its view.
func longLog(b *testing.B) View {
	b.Helper()
	v := dir(b, history(long))
	f, err := os.OpenFile(filepath.Join(v.Dir, Messages), os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil { // else its pages could not be dropped
		b.Fatal(err)
	}
	return v
}

// forget drops the file from the page cache.
func forget(b *testing.B, v View) {
	b.Helper()
	f, err := os.Open(filepath.Join(v.Dir, Messages))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}

// window32k reads 32,000 tokens from message from on and returns the bytes of
// their lines.
func window32k(b *testing.B, l *MessageLog, from int64) (own int64) {
	b.Helper()
	tokens := 0
	err := l.Range(from, long, func(m Message, raw []byte) bool {
		own += int64(len(raw)) + 1
		tokens += m.Tokens
		return tokens < 32_000
	})
	if err != nil || tokens < 32_000 {
		b.Fatal(tokens, err)
	}
	return own
}

// BenchmarkLongLog is DESIGN §9's window with 1,000,000 messages behind it, and
// the other questions, beside reading all of the log. The log is read from the
// disk ("cold") or from the page cache ("warm"); a reader is opened each time.
func BenchmarkLongLog(b *testing.B) {
	v := longLog(b)
	ask := func(name string, cold bool, f func(l *MessageLog) (own int64, err error)) {
		b.Run(name, func(b *testing.B) {
			var read, own int64
			for b.Loop() {
				if cold {
					b.StopTimer()
					forget(b, v)
					b.StartTimer()
				}
				l, err := v.MessageLog()
				if err != nil {
					b.Fatal(err)
				}
				n, err := f(l)
				if err != nil {
					b.Fatal(err)
				}
				read, own = read+l.BytesRead(), own+n
				_ = l.Close()
			}
			b.ReportMetric(float64(read)/float64(b.N), "read-B/op")
			if own > 0 {
				b.ReportMetric(float64(read)/float64(own), "read/own")
			}
		})
	}
	window := func(l *MessageLog) (int64, error) { return window32k(b, l, 654_321), nil }
	ask("Window32k/cold", true, window)
	ask("Window32k/warm", false, window)
	ask("OffsetOf/cold", true, func(l *MessageLog) (int64, error) { _, err := l.OffsetOf(123_456); return 0, err })
	ask("OffsetOf/warm", false, func(l *MessageLog) (int64, error) { _, err := l.OffsetOf(123_456); return 0, err })
	ask("Tokens/warm", false, func(l *MessageLog) (int64, error) { _, err := tokensOf(l, 1000, 900_000); return 0, err })
	ask("Count/warm", false, func(l *MessageLog) (int64, error) { _, err := l.Count(); return 0, err })
	ask("Recent20/warm", false, func(l *MessageLog) (int64, error) { _, err := l.Recent(20); return 0, err })
	ask("ReadAll/warm", false, func(l *MessageLog) (int64, error) {
		return 0, l.Tail(-1, func(Message, []byte) bool { return true })
	})
}

func BenchmarkDecodeMessage(b *testing.B) {
	short := history(1)
	tool, _ := jsonl.Append(nil, Message{Seq: 9, Role: "tool", ToolName: "shell", ToolCallID: "call_1", Content: strings.Repeat("a line of output\n", 240), Tokens: 1000, Sum: 9000,
		Timestamp: Time{Time: time.Unix(1705314620, 0)}})
	for name, line := range map[string][]byte{"short": short[:len(short)-1], "tool output": tool[:len(tool)-1]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if _, err := DecodeMessage(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppend is one message of 2,000 bytes, not synced.
func BenchmarkAppend(b *testing.B) {
	s, err := Open(b.Context(), Options{BaseDir: b.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	id, err := s.Enqueue(b.Context(), Metadata{TaskKey: key})
	if err != nil {
		b.Fatal(err)
	}
	c, _, err := s.Claim(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	m := Message{Role: "tool", ToolName: "shell", ToolCallID: "x", Content: strings.Repeat("abcdefgh", 250)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen is the start of a process on a directory that others made.
func BenchmarkOpen(b *testing.B) {
	o := Options{BaseDir: b.TempDir(), Redact: func(s string) string { return s }}
	for range b.N + 1 {
		s, err := Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
