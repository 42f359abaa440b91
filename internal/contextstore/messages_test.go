package contextstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/jsonl"
)

// naive reads a whole log as the reader must see it: every line that decodes,
// and how many others there are.
func naive(file []byte) (msgs []Message, raw []string) {
	at := int64(0)
	for _, line := range bytes.SplitAfter(file, []byte("\n")) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		m, err := DecodeMessage(text)
		if err == nil {
			m.Offset = at
			msgs, raw = append(msgs, m), append(raw, string(text))
		}
		at += int64(len(line))
	}
	return msgs, raw
}

// dir is a context's directory with the given messages in it, none for nil.
func dir(t testing.TB, messages []byte) View {
	t.Helper()
	v := View{Dir: t.TempDir(), Metadata: Metadata{UUID: "u"}}
	if messages != nil {
		if err := kernel.WriteFile(filepath.Join(v.Dir, Messages), messages, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func logOf(t testing.TB, v View) *MessageLog {
	t.Helper()
	l, err := v.MessageLog()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

var genText = rapid.OneOf(
	rapid.StringN(0, 60, 200),
	rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
	rapid.Map(rapid.IntRange(500, 20000), func(n int) string { return strings.Repeat("長い\"\n", n/4) }),
)

var genMessage = rapid.Custom(func(t *rapid.T) Message {
	m := Message{Role: rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"), Content: genText.Draw(t, "content")}
	switch m.Role {
	case "assistant":
		if rapid.Bool().Draw(t, "calls") {
			m.ToolCalls = []ToolCall{{"c1", "shell", genText.Draw(t, "arguments")}}
			m.Usage = spent(rapid.IntRange(0, 9).Draw(t, "tokens"))
			m.AnsweredBy = rapid.SampledFrom([]string{"", "openai/gpt-4o", "ollama/日本\n"}).Draw(t, "answered by")
		}
	case "tool":
		m.ToolName, m.ToolCallID, m.Failed = "shell", "c1", rapid.Bool().Draw(t, "failed")
	case "user":
		if rapid.Bool().Draw(t, "images") {
			m.Images = []Image{{Path: "images/1.png", MediaType: "image/png", Bytes: rapid.Int64Min(0).Draw(t, "bytes"), Source: "a \"b\""}, {Dropped: "file_too_large"}}
		}
	}
	return m
})

// file is a log as some writer left it.
type file struct {
	text    string
	gaps    bool // numbers are missing or stand there twice
	totals  bool // some lines carry a running total
	whole   bool // no line is damaged
	lastSeq int64
}

// genFile draws a log: of ours, of another writer, or begun by one and continued
// by the other, with damaged lines in it and at its end.
var genFile = rapid.Custom(func(t *rapid.T) file {
	f := file{gaps: rapid.Bool().Draw(t, "gaps"), whole: true}
	foreign := rapid.SampledFrom([]int{0, 0, 5, 1000}).Draw(t, "foreign lines")
	spoil := rapid.Bool().Draw(t, "spoil")
	var sum int64
	var b []byte
	for i := range rapid.IntRange(0, 60).Draw(t, "lines") {
		m := genMessage.Draw(t, "message")
		f.lastSeq++
		if f.gaps && i > 0 {
			f.lastSeq += int64(rapid.SampledFrom([]int{-1, 0, 0, 0, 3}).Draw(t, "step"))
		}
		m.Seq, m.Content, m.Tokens = f.lastSeq, jsonl.Valid(m.Content), CountTokens(m.Content)
		if i < foreign {
			text, _ := json.Marshal(m.Content)
			b = fmt.Appendf(b, `{"seq": %d, "role": %q, "content": %s, "timestamp": "2024-01-15T10:30:01", "token_count": %d, "x": {"y": 1}, "is_summarized": %t}`+"\n",
				m.Seq, m.Role, text, m.Tokens, i%3 == 0)
		} else {
			sum += int64(m.Tokens)
			m.Sum = sum
			b, _ = jsonl.Append(b, m)
			f.totals = true
		}
		if spoil && rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
			f.whole = false
			b = append(b, rapid.SampledFrom([]string{"\n", "\x00\x00\x00\n", "{}\n", "null\n", "\xff\xfe\n", "{\"role\":\"user\"}\n", " {\"seq\":1\n",
				fmt.Sprintf(`{"seq":%d,"role":"assistant","con`+"\n", m.Seq), strings.Repeat("\x00", 9000) + "\n"}).Draw(t, "line")...)
		}
	}
	torn := rapid.SampledFrom([]string{"", "", `{"seq":`, fmt.Sprintf(`{"seq":%d,"role":"user","content":"`, f.lastSeq+1), strings.Repeat("\x00", 5000), "\x00", strings.Repeat("y", 3000)}).Draw(t, "torn")
	b = append(b, torn...)
	if torn == "" && len(b) > 0 && f.whole && rapid.Bool().Draw(t, "newline missing") {
		b = b[:len(b)-1]
	}
	f.text = string(b)
	return f
})

var sameMessages = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b Time) bool { return a.Equal(b.Time) })}

// Whatever a reader finds without reading the history is what reading all of it
// finds.
func TestFoundIsWhatIsThere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		f := genFile.Draw(rt, "file")
		all, raw := naive([]byte(f.text))
		v := View{Dir: root}
		checked(rt, kernel.WriteFile(filepath.Join(root, Messages), []byte(f.text), 0o600))
		l, err := v.MessageLog()
		checked(rt, err)
		defer func() { _ = l.Close() }()

		from, to := int64(rapid.IntRange(-1, 70).Draw(rt, "from")), int64(rapid.IntRange(-1, 70).Draw(rt, "to"))
		var want, got []Message
		var tokens int64
		for _, m := range all {
			if from <= m.Seq && m.Seq <= to {
				want, tokens = append(want, m), tokens+int64(m.Tokens)
			}
		}
		checked(rt, l.Range(from, to, func(m Message, _ []byte) bool { got = append(got, m); return true }))
		equal(rt, "Range", want, got)

		at, err := l.OffsetOf(from)
		checked(rt, err)
		i := slices.IndexFunc(all, func(m Message) bool { return m.Seq >= from })
		j := slices.IndexFunc(all, func(m Message) bool { return m.Offset >= at })
		if i != j {
			rt.Errorf("OffsetOf(%d) = %d, which is before message index %d of the file, not %d", from, at, j, i)
		}
		if f.whole && i >= 0 && from > 1 && at != all[i].Offset {
			rt.Errorf("OffsetOf(%d) = %d, the message is at %d", from, at, all[i].Offset)
		}

		if n, err := tokensOf(l, from, to); err != nil || n != tokens {
			rt.Errorf("Tokens(%d, %d) = %d, %v; want %d", from, to, n, err, tokens)
		}

		n := rapid.IntRange(-1, 70).Draw(rt, "n")
		var lines []string
		got = nil
		checked(rt, l.Tail(n, func(m Message, raw []byte) bool {
			got, lines = append(got, m), append(lines, string(raw))
			return true
		}))
		tail := min(max(n, 0), len(all))
		if n < 0 {
			tail = len(all)
		}
		equal(rt, "Tail", all[len(all)-tail:], got)
		if d := cmp.Diff(raw[len(all)-tail:], lines, cmpopts.EquateEmpty()); d != "" {
			rt.Errorf("Tail's lines: %s", d)
		}
		got, err = l.Recent(n)
		checked(rt, err)
		equal(rt, "Recent", all[len(all)-min(max(n, 0), len(all)):], got)

		last, err := l.Last()
		checked(rt, err)
		seq, err := l.Count()
		checked(rt, err)
		if len(all) == 0 && (last != nil || seq != 0) || len(all) > 0 && (last == nil || last.Offset != all[len(all)-1].Offset || seq != last.Seq) {
			rt.Errorf("Last = %v, Count = %d", last, seq)
		}
	})
}

func checked(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// tokensOf is the sum of the tokens of the messages from to to.
func tokensOf(l *MessageLog, from, to int64) (n int64, err error) {
	err = l.with(func(r *lineReader) error { n, err = l.tokens(r, from, to); return err })
	return n, err
}

func equal(t *rapid.T, what string, want, got []Message) {
	if d := cmp.Diff(want, got, sameMessages); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// What the owner's cache answers is what the file holds, at every length.
func TestOwnersAnswersAreTheFiles(t *testing.T) {
	t.Parallel()
	s := open(t, Options{NoSync: true})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		if run++; run > 25 { // a context costs files and rows
			return
		}
		k := key
		k.ID = fmt.Sprint("law", run)
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k, Config: MetadataConfig{MaxMemoryMessages: rapid.SampledFrom([]int{0, 1, 7}).Draw(rt, "cache")}})
		checked(rt, err)
		c, _, err := s.Claim(t.Context(), id)
		checked(rt, err)
		defer func() { _ = c.Transition(t.Context(), task.Outcome{Status: task.Stopped}) }()
		l := c.MessageLog()
		var written []Message
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				if n := c.LastSeq(); n > 0 {
					_, err := c.AppendSummary(Summary{StartSeq: 1, EndSeq: int64(rapid.IntRange(1, int(n)).Draw(rt, "end")), Summary: "s"})
					checked(rt, err)
				}
			case 1:
				c.mu.Lock()
				c.rest()
				c.rest()
				c.mu.Unlock()
			default:
				messages := rapid.SliceOfN(genMessage, 0, 6).Draw(rt, "messages")
				for _, m := range messages {
					if len(m.Images) > 0 {
						m.Images[0], err = c.SaveImage(redPicture, "image/png")
						checked(rt, err)
					}
				}
				out, err := c.Append(messages...)
				checked(rt, err)
				written = append(written, out...)
			}
			file, err := readFile(filepath.Join(c.Dir(), Messages))
			checked(rt, err)
			all, _ := naive(file)
			equal(rt, "what Append returned", all, written)
			n := rapid.IntRange(1, 30).Draw(rt, "n")
			got, err := l.Recent(n)
			checked(rt, err)
			equal(rt, "Recent", all[max(len(all)-n, 0):], got)
		}
	})
}

func TestRecentIsServedFromMemory(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	for i := range 50 {
		if _, err := c.Append(Message{Role: "assistant", Content: fmt.Sprint("message ", i), ToolCalls: []ToolCall{{"1", "shell", "{}"}}, Usage: &Usage{Prompt: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	l := c.MessageLog()
	got, err := l.Recent(recentMessages)
	if err != nil || len(got) != recentMessages || got[19].Seq != 50 || l.BytesRead() != 0 {
		t.Fatalf("%d messages, %d bytes read, %v", len(got), l.BytesRead(), err)
	}
	if more, err := l.Recent(25); err != nil || len(more) != 25 || more[0].Seq != 26 || l.BytesRead() == 0 {
		t.Errorf("%d messages, %d bytes read, %v", len(more), l.BytesRead(), err)
	}
	// A message larger than the cache is read from the file; what was there
	// before it no longer is the latest.
	if _, err := c.Append(Message{Role: "tool", Content: strings.Repeat("x", recentBytes)}); err != nil {
		t.Fatal(err)
	}
	if cap(c.recent.buf) != 0 {
		t.Errorf("cache holds %d bytes", cap(c.recent.buf))
	}
	if got, err := l.Recent(2); err != nil || len(got) != 2 || got[0].Seq != 50 || len(got[1].Content) != recentBytes {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// The cache holds the end of what was added, as much as its bounds allow.
func TestCacheIsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var r recent
		var log [][]byte
		most := rapid.SampledFrom([]int{-1, 0, 1, 3, 1000}).Draw(rt, "most")
		bound := most
		if most < 1 {
			bound = recentMessages
		}
		big := rapid.SampledFrom([]int{10, 3000, recentBytes + 2}).Draw(rt, "longest")
		for i := range rapid.IntRange(1, 150).Draw(rt, "lines") {
			line := append(bytes.Repeat([]byte{byte('a' + i%26)}, rapid.IntRange(0, big).Draw(rt, "length")), '\n')
			log = append(log, line)
			r.add(most, line)
			held := len(r.size)
			if held > bound || cap(r.buf) > recentMemory || len(r.buf)-r.from > recentBytes {
				rt.Fatalf("%d lines, %d bytes, %d of memory", held, len(r.buf)-r.from, cap(r.buf))
			}
			if got := r.tail(1 << 30)[1:]; !bytes.Equal(got, bytes.Join(log[len(log)-held:], nil)) {
				rt.Fatalf("after line %d the cache is not the last %d lines", i, held)
			}
			n := rapid.IntRange(0, 30).Draw(rt, "n")
			if got := r.tail(n)[1:]; !bytes.Equal(got, bytes.Join(log[len(log)-min(n, held):], nil)) {
				rt.Fatalf("tail(%d) of %d lines is %d bytes", n, held, len(got))
			}
			next := log[max(len(log)-held-1, 0)]
			if held < min(bound, len(log)) && len(r.buf)-r.from+len(next) <= recentBytes && len(line) <= recentBytes && held > 1 && big < recentBytes {
				rt.Fatalf("%d lines of %d bytes where there was room for more", held, len(r.buf)-r.from)
			}
		}
	})
}

// A reader from outside sees whole messages only, wherever the write that it
// looks at has got to.
func TestViewOfAGrowingFile(t *testing.T) {
	t.Parallel()
	one, _ := jsonl.Append(nil, Message{Seq: 1, Role: "system", Content: "be good", Tokens: 1, Sum: 1})
	two, _ := jsonl.Append(nil, Message{Seq: 2, Role: "user", Content: "長い", Tokens: 1, Sum: 2})
	v := dir(t, one)
	l := logOf(t, v)
	f, err := kernel.OpenFile(filepath.Join(v.Dir, Messages), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for i := range two {
		if _, err := f.Write(two[i : i+1]); err != nil {
			t.Fatal(err)
		}
		want := int64(1)
		if i >= len(two)-2 { // the newline is not part of the message
			want = 2
		}
		n, err := l.Count()
		tokens, terr := tokensOf(l, 1, 9)
		at, aerr := l.OffsetOf(9)
		if n != want || tokens != want || err != nil || terr != nil || aerr != nil {
			t.Fatalf("after %d bytes: Count %d, Tokens %d, want %d; %v %v %v", i+1, n, tokens, want, err, terr, aerr)
		}
		if want == 1 && at != int64(len(one)) {
			t.Fatalf("after %d bytes the end is %d", i+1, at)
		}
	}
}

func TestReadersBesideTheOwner(t *testing.T) {
	t.Parallel()
	s := open(t, Options{NoSync: true})
	c := begin(t, s)
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "system", Content: "s"}); err != nil {
		t.Fatal(err)
	}
	logs := []*MessageLog{c.MessageLog(), logOf(t, v)}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, l := range logs {
		readers.Go(func() {
			for stop := false; !stop; {
				select {
				case <-done:
					stop = true
				default:
				}
				n, err := l.Count()
				want := int64(0)
				rerr := l.Range(1, n, func(m Message, _ []byte) bool { want++; return m.Seq == want })
				got, recentErr := l.Recent(5)
				for i := 1; i < len(got); i++ {
					if got[i].Seq != got[i-1].Seq+1 {
						t.Errorf("Recent: %d after %d", got[i].Seq, got[i-1].Seq)
					}
				}
				if err != nil || rerr != nil || recentErr != nil || want != n {
					t.Errorf("%d of %d messages: %v %v %v", want, n, err, rerr, recentErr)
					return
				}
			}
		})
	}
	for i := range 300 {
		if _, err := c.Append(Message{Role: "user", Content: strings.Repeat("x", i*7%900)}, Message{Role: "assistant", Content: "y"}); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	readers.Wait()
	for _, l := range logs {
		if n, err := l.Count(); n != 601 || err != nil {
			t.Errorf("Count %d, %v", n, err)
		}
	}
}

// history is a log of n messages of about 150 bytes, as we write them.
func history(n int) []byte {
	b := make([]byte, 0, n*160)
	line := []byte(`","timestamp":"2024-01-15T10:30:20.123456Z","tokens":11,"sum":`)
	for i := 1; i <= n; i++ {
		b = fmt.Appendf(b, `{"seq":%d,"role":"assistant","content":"message %7d with some text of forty letters%s%d}`+"\n", i, i, line, 11*i)
	}
	return b
}

func TestWhatIsReadDoesNotGrowWithTheHistory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2_000, 40_000} {
		v := dir(t, history(n))
		from, to := int64(n/3), int64(n/3+400)
		window := int64(0)
		for name, c := range map[string]struct {
			most func() int64
			do   func(l *MessageLog) (bool, error)
		}{
			"Range": {func() int64 { return 2 * window }, func(l *MessageLog) (bool, error) {
				want := from
				err := l.Range(from, to, func(m Message, raw []byte) bool { window += int64(len(raw)) + 1; want++; return m.Seq == want-1 })
				return want == to+1, err
			}},
			"OffsetOf": {func() int64 { return 24 << 10 }, func(l *MessageLog) (bool, error) { at, err := l.OffsetOf(to); return at > 0, err }},
			"Tokens":   {func() int64 { return 64 << 10 }, func(l *MessageLog) (bool, error) { x, err := tokensOf(l, from, to); return x == 401*11, err }},
			"Count":    {func() int64 { return 4 << 10 }, func(l *MessageLog) (bool, error) { x, err := l.Count(); return x == int64(n), err }},
			"Recent":   {func() int64 { return 16 << 10 }, func(l *MessageLog) (bool, error) { m, err := l.Recent(20); return len(m) == 20, err }},
		} {
			l := logOf(t, v)
			ok, err := c.do(l)
			if !ok || err != nil || l.BytesRead() > c.most() {
				t.Errorf("%s of %d messages: right %v, %d bytes read, at most %d; %v", name, n, ok, l.BytesRead(), c.most(), err)
			}
		}
	}
}

func TestNoMessagesAndNoContext(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]View{"missing": dir(t, nil), "empty": dir(t, []byte{}), "NULs": dir(t, make([]byte, 100<<10))} {
		l := logOf(t, v)
		last, e2 := l.Last()
		n, e3 := l.Count()
		at, e4 := l.OffsetOf(7)
		tokens, e5 := tokensOf(l, 1, 7)
		recent, e7 := l.Recent(3)
		for _, err := range []error{e2, e3, e4, e5, e7} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if last != nil || n != 0 || at != 0 || tokens != 0 || len(recent) != 0 {
			t.Errorf("%s: %v %d %d %d %v", name, last, n, at, tokens, recent)
		}
	}
	gone := View{Dir: filepath.Join(t.TempDir(), "moved")}
	if _, err := gone.MessageLog(); !os.IsNotExist(err) {
		t.Errorf("a context that is not there reads as empty: %v", err)
	}
	if _, err := gone.LatestSummary(); !os.IsNotExist(err) {
		t.Errorf("a context that is not there has no summary: %v", err)
	}
}

func TestReaderOfAClosedContextFails(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	if _, err := c.Append(Message{Role: "user", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	l := c.MessageLog()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Range(1, 1, func(Message, []byte) bool { return true }); err == nil || !strings.Contains(err.Error(), c.UUID()) {
		t.Errorf("error %v", err)
	}
}

// Numbers that fall, as two logs that were joined have them: no answer is
// promised, but every call ends and gives only what is there.
func TestNumbersThatFall(t *testing.T) {
	t.Parallel()
	v := dir(t, slices.Concat(history(300), history(200), history(5)))
	l := logOf(t, v)
	for seq := int64(0); seq < 310; seq += 7 {
		if _, err := l.OffsetOf(seq); err != nil {
			t.Fatal(err)
		}
		if err := l.Range(seq, seq+20, func(m Message, _ []byte) bool {
			if m.Seq < seq || m.Seq > seq+20 {
				t.Errorf("Range from %d gives %d", seq, m.Seq)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := tokensOf(l, seq, seq+20); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.Count(); n != 5 || err != nil {
		t.Error(n, err)
	}
}

func TestOneNumberManyTimes(t *testing.T) {
	t.Parallel()
	one, _ := jsonl.Append(nil, Message{Seq: 4, Role: "user", Content: "x"})
	two, _ := jsonl.Append(nil, Message{Seq: 5, Role: "user", Content: "y"})
	l := logOf(t, dir(t, append(bytes.Repeat(one, 20000), bytes.Repeat(two, 20000)...)))
	for seq, want := range map[int64]int{4: 0, 5: 20000 * len(one), 6: 20000 * (len(one) + len(two))} {
		if at, err := l.OffsetOf(seq); at != int64(want) || err != nil {
			t.Errorf("message %d is at %d, %v; want %d", seq, at, err, want)
		}
	}
	if n := l.BytesRead(); n > 200<<10 {
		t.Errorf("%d bytes read", n)
	}
}

func TestIdleContextLetsGo(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	if _, err := c.Append(Message{Role: "user", Content: strings.Repeat("x", 20<<10)}); err != nil {
		t.Fatal(err)
	}
	for i, kept := range []bool{true, false} { // the heartbeat after the append, and the one after that
		c.mu.Lock()
		c.rest()
		if got := c.buf != nil && len(c.recent.size) == 1; got != kept {
			t.Errorf("heartbeat %d: kept %v", i, got)
		}
		c.mu.Unlock()
	}
	if got, err := c.MessageLog().Recent(1); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
}

// An idle context with 20 typical messages takes at most 64 KiB (DESIGN §9). It
// measures memory and so runs alone.
func TestIdleContextIsSmall(t *testing.T) {
	if backend() == "postgres" {
		t.Skip("the connections of the pool are what this would measure")
	}
	const contexts = 30
	s := open(t, Options{NoSync: true})
	made := make([]*Context, contexts)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	text := strings.Repeat("typical ", 200)
	before := heap()
	for i := range made {
		k := key
		k.ID = fmt.Sprint("idle", i)
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k})
		if err != nil {
			t.Fatal(err)
		}
		if made[i], _, err = s.Claim(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made[i].Close() })
		for range 100 {
			if _, err := made[i].Append(Message{Role: "tool", Content: text + fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if each := (heap() - before) / contexts; each > 64<<10 {
		t.Errorf("%d bytes each", each)
	}
	runtime.KeepAlive(made)
}

// Whatever is in a file, readers end, give what reading all of it gives, and
// nothing that is not there.
func FuzzMessageLog(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(string(history(5)), `"seq":3`, `"seq":9`)), int64(2), int64(4))
	f.Add([]byte("{\"seq\":1,\"role\":\"u\"}\n\x00\x00\n{\"seq\":2,\"ro"), int64(1), int64(2))
	f.Add([]byte("\n\n{\"seq\":9223372036854775807,\"role\":\"u\",\"tokens\":-5}\n{}"), int64(-1), int64(9223372036854775807))
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, from, to int64) {
		name := filepath.Join(root, Messages)
		if err := kernel.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		v := View{Dir: root}
		l := logOf(t, v)
		all, raw := naive(data)
		var got []string
		if err := l.Tail(-1, func(_ Message, b []byte) bool { got = append(got, string(b)); return true }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(raw, got) {
			t.Fatalf("%d lines, want %d", len(got), len(raw))
		}
		if err := l.Range(from, to, func(m Message, b []byte) bool {
			if m.Seq < from || m.Seq > to || !slices.ContainsFunc(all, func(a Message) bool { return a.Offset == m.Offset }) {
				t.Fatalf("Range(%d, %d) gives %+v", from, to, m)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		last, err := l.Last()
		if err != nil || (last == nil) != (len(all) == 0) {
			t.Fatal(last, err)
		}
		at, err := l.OffsetOf(from)
		if err != nil || at < 0 || at > int64(len(data)) {
			t.Fatal(at, err)
		}
		if _, err := tokensOf(l, from, to); err != nil {
			t.Fatal(err)
		}
	})
}
