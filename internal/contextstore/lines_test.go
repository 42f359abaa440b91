package contextstore

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/contextstore/jsonl"
)

var genLines = rapid.Custom(func(t *rapid.T) []byte {
	var b []byte
	for range rapid.IntRange(0, 12).Draw(t, "lines") {
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(900, 1100), rapid.IntRange(mostRead-2, mostRead+2), rapid.IntRange(0, 3*mostRead)).Draw(t, "length")
		b = append(append(b, bytes.Repeat([]byte{'a' + byte(n%26)}, n)...), '\n')
	}
	return append(b, rapid.SampledFrom([]string{"", "x", "torn"}).Draw(t, "end")...)
})

// Forwards, backwards and in any order, the reader's lines are those of the
// file, and one pass reads little more than the file.
func TestLineReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		data := genLines.Draw(rt, "file")
		var starts []int64
		var want [][]byte
		at := int64(0)
		for _, l := range bytes.SplitAfter(data, []byte("\n")) {
			if len(l) > 0 {
				starts, want = append(starts, at), append(want, bytes.TrimSuffix(l, []byte("\n")))
				at += int64(len(l))
			}
		}
		next := func(i int) int64 {
			if i+1 < len(starts) {
				return starts[i+1]
			}
			return int64(len(data))
		}
		read := new(atomic.Int64)
		fresh := func() *lineReader {
			read.Store(0)
			return &lineReader{r: counted{bytes.NewReader(data), read}, end: int64(len(data))}
		}
		one := func(r *lineReader, i int) {
			got, n, err := r.line(starts[i])
			if err != nil || !bytes.Equal(got, want[i]) || n != next(i) {
				rt.Fatalf("line %d: %d bytes, next at %d, %v; want %d bytes, next at %d", i, len(got), n, err, len(want[i]), next(i))
			}
		}
		r := fresh()
		for i := range starts {
			one(r, i)
		}
		if n := read.Load(); n != int64(len(data)) {
			rt.Errorf("forwards: %d bytes read of %d", n, len(data))
		}
		r = fresh()
		for i := range slices.Backward(starts) {
			if s, err := r.start(next(i)); err != nil || s != starts[i] {
				rt.Fatalf("start of line %d is %d, %v; want %d", i, s, err, starts[i])
			}
			one(r, i)
		}
		if n := read.Load(); n > 3*int64(len(data))+2*mostRead {
			rt.Errorf("backwards: %d bytes read of %d", n, len(data))
		}
		r = fresh()
		for range rapid.IntRange(0, 8).Draw(rt, "visits") {
			if len(starts) == 0 {
				break
			}
			i := rapid.IntRange(0, len(starts)-1).Draw(rt, "line")
			switch rapid.IntRange(0, 2).Draw(rt, "how") {
			case 0:
				one(r, i)
			case 1:
				if s, err := r.start(next(i)); err != nil || s != starts[i] {
					rt.Fatalf("start of line %d is %d, %v; want %d", i, s, err, starts[i])
				}
			case 2:
				limit := starts[i] + int64(rapid.IntRange(0, 3*mostRead).Draw(rt, "limit"))
				limit = min(limit, int64(len(data)))
				if s, err := r.behind(starts[i], limit); err != nil || s != min(next(i), limit) {
					rt.Fatalf("behind line %d is %d, %v; want %d", i, s, err, min(next(i), limit))
				}
			}
		}
		var back [][]byte
		if err := jsonl.Back(bytes.NewReader(data), int64(len(data)), func(_ int64, b []byte) bool { back = append(back, bytes.Clone(b)); return true }); err != nil {
			rt.Fatal(err)
		}
		slices.Reverse(back)
		want = slices.DeleteFunc(want, func(b []byte) bool { return len(b) == 0 })
		if !slices.EqualFunc(back, want, bytes.Equal) {
			rt.Errorf("Back gives %d lines, want %d", len(back), len(want))
		}
	})
}

// shrunk is a file that lost its end after its length was taken.
func TestFileThatIsCutWhileItIsRead(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("0123456\n", 100)
	r := &lineReader{r: strings.NewReader(data), end: 8000}
	n := 0
	for off := int64(0); off < r.end; n++ {
		_, next, err := r.line(off)
		if err != nil {
			t.Fatal(err)
		}
		off = next
	}
	if n < 100 || n > 101 {
		t.Errorf("%d lines", n)
	}
	if _, err := (&lineReader{r: strings.NewReader(data), end: 8000}).start(8000); err == nil {
		t.Error("bytes that are gone were read backwards")
	}
}

// longFile is a log whose middle message is huge and is nowhere held: small
// messages, one of long bytes, small messages.
type longFile struct {
	head, tail []byte
	long       int64
}

func (f longFile) size() int64 { return int64(len(f.head)) + f.long + int64(len(f.tail)) }

func (f longFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n) - int64(len(f.head))
		switch {
		case at < 0:
			n += copy(p[n:], f.head[off+int64(n):])
		case at < f.long:
			m := min(int64(len(p)-n), f.long-at)
			for i := range p[n : n+int(m)] {
				p[n+i] = 'x'
			}
			n += int(m)
		case at < f.long+int64(len(f.tail)):
			n += copy(p[n:], f.tail[at-f.long:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

// A search passes a line of 50 MB without holding it, and reads it once.
// It measures memory and so runs alone.
func TestSearchPassesHugeLines(t *testing.T) {
	small := history(2000)
	i := bytes.Index(small, []byte(`{"seq":1001,`))
	j := i + bytes.Index(small[i:], []byte(`some text`))
	f := longFile{head: small[:j], tail: small[j:], long: 50 << 20}
	for _, seq := range []int64{1, 2, 999, 1001, 1002, 2000, 2001} {
		var before, after runtime.MemStats
		read := new(atomic.Int64)
		runtime.ReadMemStats(&before)
		at, err := seek(&lineReader{r: counted{f, read}, end: f.size()}, seq)
		runtime.ReadMemStats(&after)
		want := int64(bytes.Index(small, fmt.Appendf(nil, `{"seq":%d,`, seq)))
		switch {
		case seq > 2000:
			want = f.size()
		case seq > 1001:
			want += f.long
		}
		if at != want || err != nil {
			t.Errorf("message %d is at %d, %v; want %d", seq, at, err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("message %d: %d bytes of memory", seq, n)
		}
		if n := read.Load(); n > f.long+f.long/50 {
			t.Errorf("message %d: %d bytes read", seq, n)
		}
	}
}
