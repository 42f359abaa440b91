package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// The names of the long part's sample. Times are ms, bytes are what was read.
const (
	longCount   = "long count"   // messages
	longBytes   = "long bytes"   // of messages.jsonl
	openTime    = "open time"    // open the store, claim with repair: after kill -9, nothing cached
	openRead    = "open read"    // by it, of all files
	openFewRead = "open few"     // the same with fewMessages in the context
	openSince   = "open since"   // bytes in the logs since the checkpoint
	resumeTime  = "resume time"  // assemble the window after that, as memory does
	resumeRead  = "resume read"  // by it
	resumeOwn   = "resume own"   // bytes of its messages
	warmRead    = "warm read"    // by a turn that appends to the window
	rangeTime   = "range time"   // 32k tokens from the middle, nothing cached
	rangeRead   = "range read"   // by it
	rangeOwn    = "range own"    // bytes of its lines
	countTime   = "count time"   // how many messages
	countRead   = "count read"   //
	allTime     = "all time"     // the naive way: read all, decode all
	allRead     = "all read"     //
	sinceKilled = "since killed" // messages since the checkpoint
)

// The files of a context that contextstore has no public name for.
const (
	stateFile  = "state.json"
	windowFile = "window.jsonl"
)

const (
	windowTokens = 32_000
	fewMessages  = 5000 // more than a window
	longRounds   = 7
	naiveRounds  = 3
	lateTurns    = 20 // of an owner that is killed, after its checkpoint
)

// longLog is a context with a long history and no owner.
type longLog struct {
	base, uuid string
	dir        string
	count      int
	size       int64  // of messages.jsonl as it was made
	tools      int64  // of tools.jsonl
	state      []byte // state.json
}

// measureLong measures what is done with a long history, after kill -9.
func measureLong(ctx context.Context, dir string, count int) (sample, error) {
	few, err := writeLong(ctx, filepath.Join(dir, "few"), min(count, fewMessages))
	if err != nil {
		return nil, err
	}
	s := sample{}
	if err := s.addResume(ctx, few); err != nil {
		return nil, err
	}
	fewRead := s[openRead]
	l, err := writeLong(ctx, filepath.Join(dir, "many"), count)
	if err != nil {
		return nil, err
	}
	s = sample{longCount: float64(count), longBytes: float64(l.size), openFewRead: fewRead}
	if err := s.addResume(ctx, l); err != nil {
		return nil, err
	}
	if err := s.addReads(ctx, l); err != nil {
		return nil, err
	}
	if s[peak], err = ownPeak(); err != nil {
		return nil, err
	}
	return s, s.addNaive(ctx, l)
}

// writeLong makes a context with count messages, half as many tool calls and a
// window that was cut windowTokens before the end.
func writeLong(ctx context.Context, base string, count int) (*longLog, error) {
	store, err := openStore(ctx, base, contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	c, err := claimNew(ctx, store, 1)
	if err != nil {
		return nil, err
	}
	l := &longLog{base: store.BaseDir, uuid: c.UUID(), dir: c.Dir(), count: count}
	if err := c.Close(); err != nil {
		return nil, err
	}
	files, err := l.writeLogs()
	if err != nil {
		return nil, err
	}
	st, err := contextstore.ReadState(l.dir)
	if err != nil {
		return nil, err
	}
	st.TaskStatus, st.Files, st.MessageCount, st.ToolCallCount = task.Running, files, int64(count), int64(count/2)
	if l.state, err = json.Marshal(st); err != nil {
		return nil, err
	}
	return l, l.restore()
}

// restore makes the context again what it was before an owner came.
func (l *longLog) restore() error {
	return errors.Join(
		os.Truncate(filepath.Join(l.dir, contextstore.Messages), l.size),
		os.Truncate(filepath.Join(l.dir, contextstore.Tools), l.tools),
		os.WriteFile(filepath.Join(l.dir, stateFile), l.state, 0o600))
}

// contentTokens are the tokens of a message of writeLogs.
const contentTokens = 20

// writeLogs writes the logs line by line, as contextstore would, and syncs them.
func (l *longLog) writeLogs() (map[string]contextstore.Mark, error) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	late := lateTurns * (contextstore.CountTokens(typical(0).Content) + contextstore.CountTokens(answerText))
	cut := max(l.count-(windowTokens-late)/contentTokens, 3)
	var cutAt int64
	n := 0
	size, err := writeLines(filepath.Join(l.dir, contextstore.Messages), l.count, func(b []byte, at64 int64) []byte {
		n++
		if n == cut {
			cutAt = at64
		}
		role := "user"
		switch {
		case n == 1:
			role = "system"
		case n > 2 && n%2 == 1:
			role = "assistant"
		}
		b = append(b, `{"seq":`...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, `,"role":"`...)
		b = append(b, role...)
		b = append(b, `","content":"message `...)
		b = fmt.Appendf(b, "%07d", n)
		// 80 characters are 20 tokens (store-v3 §3.2).
		b = append(b, ` says what 80 characters can say of a step in a long run, no more","timestamp":"`...)
		b = at.Add(time.Duration(n)*time.Second).AppendFormat(b, "2006-01-02T15:04:05.000000Z")
		b = append(b, `","tokens":20,"sum":`...)
		b = strconv.AppendInt(b, contentTokens*int64(n), 10)
		return append(b, '}')
	})
	if err != nil {
		return nil, err
	}
	calls := 0
	tools, err := writeLines(filepath.Join(l.dir, contextstore.Tools), l.count/2, func(b []byte, _ int64) []byte {
		calls++
		b = fmt.Appendf(b, `{"seq":%d,"tool":"shell","args":{"command":"go test"},"result":"ok","status":"success","duration_ms":12,"timestamp":"`, calls)
		b = at.Add(2*time.Duration(calls)*time.Second).AppendFormat(b, "2006-01-02T15:04:05.000000Z")
		return fmt.Appendf(b, `","call_id":"call_%d"}`, calls)
	})
	if err != nil {
		return nil, err
	}
	event, err := json.Marshal(contextstore.WindowEvent{ID: 1, Type: "truncate", FromSeq: int64(cut), Offset: cutAt, Dropped: int64(cut - 3), Reason: "over the limit",
		Timestamp: contextstore.Time{Time: at.Add(time.Duration(l.count) * time.Second)}})
	if err != nil {
		return nil, err
	}
	l.size, l.tools = size, tools
	window, err := writeLines(filepath.Join(l.dir, windowFile), 1, func(b []byte, _ int64) []byte { return append(b, event...) })
	return map[string]contextstore.Mark{
		contextstore.Messages: {Bytes: size, Seq: int64(l.count)},
		contextstore.Tools:    {Bytes: tools, Seq: int64(l.count / 2)},
		windowFile:            {Bytes: window, Seq: 1},
	}, err
}

// writeLines writes n lines and syncs the file. line appends a line, without
// its newline, that begins at an offset.
func writeLines(path string, n int, line func(b []byte, at int64) []byte) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, mib)
	var b []byte
	for range n {
		b = append(line(b[:0], size), '\n')
		if _, err := w.Write(b); err != nil {
			return 0, errors.Join(err, f.Close())
		}
		size += int64(len(b))
	}
	return size, errors.Join(w.Flush(), f.Sync(), f.Close())
}

// ownAndDie is the process that owns a context, takes turns after its
// checkpoint and is killed in the middle of a line.
func ownAndDie(ctx context.Context, base, uuid, turns string) error {
	n, err := strconv.Atoi(turns)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, base, contextstore.Options{})
	if err != nil {
		return err
	}
	c, _, err := store.Claim(ctx, uuid)
	if err != nil {
		return err
	}
	for k := range n {
		if err := takeTurn(ctx, c, k, func() {}); err != nil {
			return err
		}
	}
	for _, log := range []string{contextstore.Messages, contextstore.Tools} {
		f, err := os.OpenFile(filepath.Join(c.Dir(), log), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if _, err := f.WriteString(`{"seq":1000041,"role":"assistant","content":"half a li`); err != nil {
			return err
		}
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// kill lets another process own the context and be killed.
func (l *longLog) kill(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "ledger", "owner", l.base, l.uuid, strconv.Itoa(lateTurns))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !st.Signaled() || st.Signal() != syscall.SIGKILL || ctx.Err() != nil {
		return fmt.Errorf("the owner that is to be killed ended by itself: %w: %s", err, out)
	}
	return nil
}

// forget drops what the kernel caches of the context's logs. Only what is
// synced can be dropped.
func (l *longLog) forget() error {
	for _, log := range []string{contextstore.Messages, contextstore.Tools, windowFile} {
		f, err := os.Open(filepath.Join(l.dir, log))
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return fmt.Errorf("drop %s from the page cache: %w", log, err)
		}
	}
	return nil
}

// grown is how many bytes messages.jsonl and tools.jsonl have more than as they
// were made.
func (l *longLog) grown() (sum int64, err error) {
	for _, log := range []string{contextstore.Messages, contextstore.Tools} {
		st, err := os.Stat(filepath.Join(l.dir, log))
		if err != nil {
			return 0, err
		}
		sum += st.Size()
	}
	return sum - l.size - l.tools, nil
}

// addResume measures how a run is taken up after its owner was killed.
func (s sample) addResume(ctx context.Context, l *longLog) error {
	var all []sample
	for range longRounds {
		if err := l.restore(); err != nil {
			return err
		}
		if err := l.kill(ctx); err != nil {
			return err
		}
		if err := l.forget(); err != nil {
			return err
		}
		grown, err := l.grown()
		if err != nil {
			return err
		}
		one, err := l.resume(ctx)
		if err != nil {
			return err
		}
		one[openSince] = float64(grown)
		all = append(all, one)
	}
	for name, v := range medians(all) {
		s[name] = v
	}
	return nil
}

// resume takes the run up once: open, repair, claim, assemble the window.
func (l *longLog) resume(ctx context.Context) (one sample, err error) {
	one = sample{}
	var store *contextstore.Store
	var c *contextstore.Context
	var repairs []string
	read, err := readBy(func() (err error) {
		start := time.Now()
		if store, err = openStore(ctx, l.base, contextstore.Options{}); err != nil {
			return err
		}
		c, repairs, err = store.Claim(ctx, l.uuid)
		one[openTime] = ms(time.Since(start))
		return err
	})
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if len(repairs) < 2 || c.LastSeq() < int64(l.count+2*lateTurns) {
		return nil, fmt.Errorf("%d messages, mended: %q: want the torn ends of two logs cut off", c.LastSeq(), repairs)
	}
	one[openRead], one[sinceKilled] = float64(read), 2*lateTurns
	return one, one.addWindow(c)
}

// addWindow assembles the window as a run does and appends to it.
func (s sample) addWindow(c *contextstore.Context) error {
	client, err := openai.New(openai.Config{Provider: "openai", Model: "bench", BaseURL: "http://127.0.0.1:1", APIKey: "dummy"})
	if err != nil {
		return err
	}
	var w *memory.Window
	read, err := readBy(func() (err error) {
		start := time.Now()
		w, err = memory.Open(c, client.Open(llm.Settings{}), memory.Policy{Limit: largeContext})
		s[resumeTime] = ms(time.Since(start))
		return err
	})
	if err != nil {
		return err
	}
	event, err := c.LastWindow()
	if err != nil {
		return err
	}
	st, err := os.Stat(filepath.Join(c.Dir(), contextstore.Messages))
	if err != nil {
		return err
	}
	s[resumeRead], s[resumeOwn] = float64(read), float64(st.Size()-event.Offset)
	if got := w.Last().Seq; got != c.LastSeq() {
		return fmt.Errorf("the window ends with message %d, the log with %d", got, c.LastSeq())
	}
	read, err = readBy(func() error {
		m, err := c.Append(typical(1))
		if err == nil {
			w.Add(m[0])
		}
		return err
	})
	s[warmRead] = float64(read)
	return err
}

// addReads measures questions to the log of whoever looks at a run: a reader is
// opened for each, and nothing is cached.
func (s sample) addReads(ctx context.Context, l *longLog) error {
	v, err := contextstore.Find(l.base, l.uuid, contextstore.Viewer{Admin: true})
	if err != nil {
		return err
	}
	middle := int64(l.count) * 65 / 100
	var own, tokens int64
	questions := []struct {
		time, read string
		ask        func(m *contextstore.MessageLog) error
	}{
		{rangeTime, rangeRead, func(m *contextstore.MessageLog) error {
			own, tokens = 0, 0
			return m.Range(middle, int64(l.count), func(m contextstore.Message, raw []byte) bool {
				own += int64(len(raw)) + 1
				tokens += int64(m.Tokens)
				return tokens < windowTokens
			})
		}},
		{countTime, countRead, func(m *contextstore.MessageLog) error {
			n, err := m.Count()
			if err == nil && n < int64(l.count) {
				err = fmt.Errorf("counted %d messages of %d", n, l.count)
			}
			return err
		}},
	}
	for _, q := range questions {
		var read int64
		s[q.time], err = timed(ctx, longRounds, l.forget, func() error {
			m, err := v.MessageLog()
			if err != nil {
				return err
			}
			defer func() { _ = m.Close() }() // only read from
			err = q.ask(m)
			read = m.BytesRead()
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", q.time, err)
		}
		s[q.read] = float64(read)
	}
	s[rangeOwn] = float64(own)
	return nil
}

// addNaive reads all of the log and decodes all of it, which answers each of
// the questions.
func (s sample) addNaive(ctx context.Context, l *longLog) (err error) {
	path := filepath.Join(l.dir, contextstore.Messages)
	s[allTime], err = timed(ctx, naiveRounds, l.forget, func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only read from
		r := bufio.NewReaderSize(f, mib)
		var tokens, read int64
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				break
			}
			var m contextstore.Message
			if err := json.Unmarshal(bytes.TrimSpace(line), &m); err != nil {
				return err
			}
			tokens += int64(m.Tokens)
			read += int64(len(line))
		}
		s[allRead] = float64(read)
		if tokens < int64(l.count)*contentTokens {
			return fmt.Errorf("%d tokens in all, want %d", tokens, l.count*contentTokens)
		}
		return nil
	})
	return err
}
