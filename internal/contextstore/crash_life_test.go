package contextstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// life is a program that leads one context from its making to its end, step by
// step, in a world where a disk call is the only thing that happens by chance.
type life struct {
	base  string
	fs    *disk.FS
	clock atomic.Int64
	uuids int

	store *Store
	ctx   *Context
	uuid  string // of the context, once its making was acknowledged

	// Of the claims so far, what they mended.
	repairs []string
	// Called after each step with what it promises from then on; may be nil.
	ack func(promise)
}

// step is one thing that a life does and is told the success of.
type step struct {
	name string
	do   func(ctx context.Context, l *life) error
}

// promise is what must be true of the disk once a step was acknowledged.
type promise struct {
	step     string
	uuid     string
	sizes    map[string]int64 // of each log
	tools    int64            // bytes of tools.jsonl that a checkpoint covers
	messages int64            // bytes of messages.jsonl that are synced: up to the last line that is not asked by the run itself, or the checkpoint
	window   int64            // bytes of window.jsonl that are synced: up to the last line that is no mask, or the checkpoint
	state    State
}

func newLife(base string, fs *disk.FS) *life { return &life{base: base, fs: fs} }

func (l *life) options() Options {
	return Options{
		BaseDir: l.base, FS: l.fs, Heartbeat: time.Hour,
		Redact: func(s string) string { return s },
		// A second passes with each look at the clock, so that no write waits for
		// an earlier one to be old.
		Now:     func() time.Time { return time.Unix(1_700_000_000+l.clock.Add(1), 0) },
		NewUUID: func() string { l.uuids++; return fmt.Sprintf("00000000-0000-4000-8000-%012d", l.uuids) },
	}
}

// run takes the steps from number from on and returns the one it failed at.
func (l *life) run(ctx context.Context, steps []step, from int) (failed int, err error) {
	for i := from; i < len(steps); i++ {
		if err := l.take(ctx, steps[i]); err != nil {
			return i, err
		}
	}
	return len(steps), nil
}

func (l *life) take(ctx context.Context, s step) error {
	if err := s.do(ctx, l); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if l.ack == nil {
		return nil
	}
	p, err := promised(l.base, l.uuid)
	p.step = s.name
	if err == nil {
		l.ack(p)
	}
	return err
}

// promised is what a running program sees of the context and thus relies on.
func promised(base, uuid string) (promise, error) {
	p := promise{uuid: uuid, sizes: map[string]int64{}}
	if uuid == "" {
		return p, nil
	}
	dir, err := FindDir(base, uuid)
	if err != nil {
		return p, err
	}
	if p.state, err = ReadState(dir); err != nil {
		return p, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, f := range logs {
		st, serr := os.Stat(f)
		if err = errors.Join(err, serr); serr == nil && !untouched(p.state, filepath.Base(f)) {
			p.sizes[filepath.Base(f)] = st.Size()
		}
	}
	p.tools, p.window = p.state.Files[Tools].Bytes, p.state.Files[Window].Bytes
	p.messages = p.state.Files[Messages].Bytes
	if lines, rerr := readFile(filepath.Join(dir, Messages)); rerr == nil {
		at := int64(0)
		for line := range bytes.Lines(lines) {
			if at += int64(len(line)); !bytes.Contains(line, []byte(`"kind":`)) {
				p.messages = max(p.messages, at)
			}
		}
	}
	if events, rerr := readFile(filepath.Join(dir, Window)); rerr == nil {
		at := int64(0)
		for line := range bytes.Lines(events) {
			if at += int64(len(line)); !bytes.Contains(line, []byte(`"type":"mask"`)) {
				p.window = max(p.window, at)
			}
		}
	}
	return p, err
}

// die is the end of the process, by no will of its own.
func (l *life) die() {
	if l.ctx != nil {
		l.ctx.abandon()
		l.ctx = nil
	}
	if l.store != nil {
		_ = l.store.Close()
		l.store = nil
	}
}

func doing(name string, f func(c *Context) error) step {
	return step{name, func(_ context.Context, l *life) error { return f(l.ctx) }}
}

func ending(o task.Outcome, effects ...Effect) step {
	return step{"transition to " + string(o.Status), func(ctx context.Context, l *life) error {
		err := l.ctx.Transition(ctx, o, effects...)
		if l.ctx.ended {
			l.ctx = nil
		}
		var unfinished *UnfinishedError
		if !errors.As(err, &unfinished) || errors.Is(err, errStopped) {
			return err
		}
		// The outcome stands. A daemon finishes what it left at its next look.
		c, _, err := l.store.Claim(ctx, l.uuid)
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err == nil {
			err = c.Close()
		}
		return err
	}}
}

var opening = step{"open the store", func(ctx context.Context, l *life) (err error) {
	l.store, err = Open(ctx, l.options())
	return err
}}

var enqueuing = step{"enqueue", func(ctx context.Context, l *life) error {
	id, err := l.store.Enqueue(ctx, Metadata{TaskKey: crashKey, Title: "crash", User: "ken"})
	if err == nil {
		l.uuid = id
	}
	return err
}}

var claiming = step{"claim", func(ctx context.Context, l *life) (err error) {
	var repairs []string
	l.ctx, repairs, err = l.store.Claim(ctx, l.uuid)
	l.repairs = append(l.repairs, repairs...)
	return err
}}

// turn is the steps of one turn with two calls (PROTOCOL "Turn").
func turn(n int) []step {
	call := func(i int) redact.Opaque { return redact.Opaque(fmt.Sprintf("call-%d-%d", n, i)) }
	return []step{
		doing("activity before the answer", func(c *Context) error { return c.Activity(Processing, "llm_call") }),
		doing("append the answer", func(c *Context) error {
			_, err := c.Append(Message{Role: "assistant", Content: fmt.Sprintf("turn %d: 二つ呼びます", n), Usage: spent(n),
				ToolCalls: []ToolCall{{call(1), "read_file", `{"path":"a.go"}`}, {call(2), "shell", `{"command":"go test"}`}}})
			return err
		}),
		doing("activity before the tools", func(c *Context) error { return c.Activity(Processing, "tool_execution") }),
		doing("append the first tool run", func(c *Context) error {
			return c.AppendTools(ToolRun{Tool: "read_file", Args: json.RawMessage(`{"path":"a.go"}`), Status: "success", Result: "package a\n", CallID: call(1)})
		}),
		doing("append the second tool run", func(c *Context) error {
			return c.AppendTools(ToolRun{Tool: "shell", Args: json.RawMessage(`{}`), Status: "error", Error: strings.Repeat("FAIL ", 20), CallID: call(2)})
		}),
		doing("append the results", func(c *Context) error {
			_, err := c.Append(Message{Role: "tool", ToolName: "read_file", ToolCallID: call(1), Content: "package a\n"},
				Message{Role: "tool", ToolName: "shell", ToolCallID: call(2), Content: strings.Repeat("FAIL ", 20)})
			return err
		}),
		{"turn done", func(ctx context.Context, l *life) error { return l.ctx.TurnDone(ctx) }},
	}
}

var checking = doing("append a check", func(c *Context) error {
	return c.AppendCheck(CheckRun{Round: 1, Command: "go test ./...", ExitCode: 1, Failing: []string{"TestA"}, Output: "--- FAIL: TestA"})
})

var windowing = doing("append a window event", func(c *Context) error {
	return c.AppendWindow(WindowEvent{Type: "truncate", FromSeq: 3, Offset: 10, Dropped: 2, Reason: "over the cap"})
})

var masking = doing("append a window event without a sync", func(c *Context) error {
	return c.AppendWindow(WindowEvent{Type: WindowMask, FromSeq: 3, Offset: 10, MaskSeq: 5, Reason: "a batch"})
})

func committing(seq int64, commit string) step {
	return doing("committed", func(c *Context) error { return c.Committed(seq, commit) })
}

var crashKey = task.Key{Source: "folder", Owner: "abc", Repo: "demo", Type: "issue", ID: "7"}

// wholeLife is the steps of a life. What a context can do belongs in here.
func wholeLife() []step {
	steps := []step{
		opening,
		enqueuing,
		claiming,
		doing("append the request", func(c *Context) error {
			_, err := c.Append(Message{Role: "system", Content: "be good"}, Message{Role: "user", Content: "直して"})
			return err
		}),
	}
	steps = append(steps, turn(1)...)
	steps = append(steps, checking, committing(3, "c0ffee"))
	asking := doing("append what is asked", func(c *Context) error {
		_, err := c.Append(Message{Role: "user", Kind: "reflect", Content: "how does it go?"})
		return err
	})
	steps = append(steps, turn(2)...)
	steps = append(steps, asking)
	steps = append(steps, turn(5)...)
	steps = append(steps, asking, windowing, masking, doing("checkpoint", (*Context).Checkpoint))
	steps = append(steps, turn(3)...)
	told, done := Effect{Key: "told", Kind: "comment", Data: json.RawMessage(`{"n":1}`)}, Effect{Key: "done", Kind: "comment", Data: json.RawMessage(`{"n":2}`)}
	steps = append(steps, doing("append a summary", func(c *Context) error {
		_, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 4, Summary: "it began", OriginalTokens: 10})
		return err
	}), step{"ask for a pause", func(ctx context.Context, l *life) error {
		_, err := l.store.Control(ctx, l.uuid, Pause, "ken")
		return err
	}},
		ending(task.Outcome{Status: task.Paused, Reason: "asked"}, told, done),
		step{"acknowledge", func(ctx context.Context, l *life) error { return l.store.Acknowledge(ctx, l.uuid, told, "") }}, claiming)
	steps = append(steps, turn(4)...)
	steps = append(steps, masking, windowing, checking, committing(12, "deadbeef"),
		doing("activity at the end", func(c *Context) error { return c.Activity(Completing, "summary") }),
		ending(task.Outcome{Status: task.Completed, Summary: "it works now"}, Effect{Key: "end", Kind: "push", Data: json.RawMessage(`{"n":3}`)}))
	return steps
}

// afterlife is the steps of whoever comes after a crash, from the claim on.
func afterlife() []step {
	steps := []step{
		claiming,
		doing("append a message", func(c *Context) error { _, err := c.Append(Message{Role: "user", Content: "go on"}); return err }),
	}
	steps = append(steps, turn(9)...)
	return append(steps, masking, checking, ending(task.Outcome{Status: task.Completed, Summary: "it works after all"}))
}
