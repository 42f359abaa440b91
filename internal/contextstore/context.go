package contextstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"

	"toritsugi/internal/contextstore/jsonl"
)

// Context is one run's files in the hands of their owner. Its methods may be
// called from several goroutines; the files are touched by one at a time.
type Context struct {
	store *Store
	meta  Metadata
	lock  *lock
	work  *os.File // work.lock

	rebooted bool

	mu        sync.Mutex
	dir       string
	state     State
	since     Time // what ActiveMS has been counted up to
	saved     time.Time
	pending   bool   // state.json is behind; flush will write it
	durable   []byte // what state.json says durably, if nothing else does
	rowAt     time.Time
	rowBehind bool
	lost      error       // another process took the context over
	flush     *time.Timer // runs while the context is open
	flushing  bool
	ended     bool
	messages  *logFile
	tools     *logFile
	window    *logFile
	checks    *logFile
	tokens    int64 // running total of the last message
	buf       []byte
	asides    asides // that no line of summaries.jsonl has yet
	recent    recent // the latest messages, at hand
	rested    int64  // the last message at the latest heartbeat

	stop chan struct{}
	done sync.WaitGroup
}

// logFile is an append-only file of numbered lines.
type logFile struct {
	*disk.File
	seq      int64 // of the last line
	unsynced bool  // its last lines are
}

// UUID is the context's name.
func (c *Context) UUID() string { return c.meta.UUID }

// Metadata is what was written when the task was made.
func (c *Context) Metadata() Metadata { return c.meta }

// Dir is where the files lie now; it changes with the status.
func (c *Context) Dir() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dir
}

// State returns a copy of the counters and status.
func (c *Context) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// LastSeq is the number of the last message, 0 before the first.
func (c *Context) LastSeq() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages.seq
}

// Append writes messages after the last one and returns them as they were
// written: numbered, timed, redacted. They are on disk when it returns (in the
// page cache with durability "os"); on an error none of them is. Their Seq,
// Timestamp, Tokens and Sum are filled in. Source: store-v3 §4.2.
//
// What the run itself asks of its model (a user's message with a Kind) is on disk
// with the next message or decision that is: it follows from what is there, and a
// power cut that takes it has it asked again.
func (c *Context) Append(msgs ...Message) ([]Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	seq, total, now := c.messages.seq, c.tokens, c.store.now().Written()
	before := total
	buf := c.buf[:0]
	out := make([]Message, len(msgs))
	for i, m := range msgs {
		if err := c.haveImages(m); err != nil {
			return nil, err
		}
		m = c.redact(m)
		seq++
		m.Seq, m.Timestamp, m.Tokens = seq, now, CountTokens(m.Content)
		total += int64(m.Tokens)
		m.Sum = total
		m.Offset = c.messages.Size() + int64(len(buf))
		var err error
		if buf, err = jsonl.Append(buf, m); err != nil {
			return nil, err
		}
		out[i] = m
	}
	c.keep(buf)
	start := c.messages.Size()
	durable := slices.ContainsFunc(msgs, func(m Message) bool { return m.Role != "user" || m.Kind == "" })
	if err := c.write(c.messages, buf, durable); err != nil {
		return nil, err
	}
	c.messages.seq, c.tokens = seq, total
	for i, m := range out {
		c.recount(m)
		end := c.messages.Size()
		if i+1 < len(out) {
			end = out[i+1].Offset
		}
		c.recent.add(c.meta.Config.MaxMemoryMessages, buf[m.Offset-start:end-start])
	}
	c.state.CurrentContextTokens += total - before
	return out, nil
}

// usable returns the error of a context that is not ours to write any more.
func (c *Context) usable() error {
	if c.ended {
		return ErrEnded
	}
	return c.lost
}

// keep reuses the line buffer for the next append unless it has grown big: an
// idle context stays small (DESIGN §9).
func (c *Context) keep(buf []byte) {
	if cap(buf) <= 32<<10 {
		c.buf = buf[:0]
	} else {
		c.buf = nil
	}
}

// clean is a text as it will be read back: redacted and UTF-8.
func (c *Context) clean(s string) string { return jsonl.Valid(c.store.Redact(s)) }

// opaque is a text as it will be read back that goes unredacted: a provider
// wants it as it was.
func opaque(s redact.Opaque) redact.Opaque { return redact.Opaque(jsonl.Valid(string(s))) }

// redact masks every text of a message but what is typed redact.Opaque.
func (c *Context) redact(m Message) Message {
	m.Content, m.Reasoning = c.clean(m.Content), c.clean(m.Reasoning)
	m.ToolName, m.FinishReason, m.ToolCallID = c.clean(m.ToolName), c.clean(m.FinishReason), opaque(m.ToolCallID)
	m.Provider = opaque(m.Provider)
	m.Images = c.redactImages(m.Images)
	if len(m.ToolCalls) > 0 {
		calls := make([]ToolCall, len(m.ToolCalls))
		for i, t := range m.ToolCalls {
			calls[i] = ToolCall{ID: opaque(t.ID), Name: c.clean(t.Name), Arguments: c.clean(t.Arguments)}
		}
		m.ToolCalls = calls
	}
	m.AnsweredBy, m.Kind = c.clean(m.AnsweredBy), c.clean(m.Kind)
	return m
}

// write appends whole lines; with durable it also syncs them.
func (c *Context) write(f *logFile, lines []byte, durable bool) error {
	before := f.Size()
	if _, err := f.Append(lines); err != nil {
		return err
	}
	if !durable || c.store.NoSync {
		f.unsynced = true
		return nil
	}
	if err := f.Sync(); err != nil {
		// Not acknowledged: take the lines back so that the next owner does not
		// find messages whose writer never knew of them.
		return errors.Join(err, f.Truncate(before))
	}
	f.unsynced = false
	return nil
}

// AppendWindow records a decision about the window before a request that
// follows from it is sent. It is synced, but for stubs, which are the one kind
// that comes every few turns: a power cut that takes such a line takes a decision
// that the next owner makes again of the same messages.
func (c *Context) AppendWindow(e WindowEvent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.ID, e.Timestamp, e.AtSeq = c.window.seq+1, c.store.now(), c.messages.seq
	e.Reason, e.Note = c.clean(e.Reason), c.clean(e.Note)
	if e.Type != WindowMask && c.messages.unsynced && !c.store.NoSync {
		if err := c.messages.Sync(); err != nil { // the decision names them
			return err
		}
		c.messages.unsynced = false
	}
	return c.appendOne(c.window, e, e.Type != WindowMask)
}

// AppendCheck records a check command that ran to its end; it is synced.
func (c *Context) AppendCheck(r CheckRun) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Seq, r.Timestamp = c.checks.seq+1, c.store.now()
	r.Output, r.Command = c.store.Redact(r.Output), c.store.Redact(r.Command)
	for _, list := range []*[]string{&r.Failing, &r.Missing, &r.Excused} {
		*list = slices.Clone(*list)
		for i, name := range *list {
			(*list)[i] = c.store.Redact(name)
		}
	}
	return c.appendOne(c.checks, r, true)
}

func (c *Context) appendOne(f *logFile, v any, durable bool) error {
	if err := c.usable(); err != nil {
		return err
	}
	line, err := jsonl.Append(nil, v)
	if err != nil {
		return err
	}
	if err := c.write(f, line, durable); err != nil {
		return err
	}
	f.seq++
	return nil
}

// quiet is the least time between two unsynced writes of state.json, and
// between two updates of the row. Turns that take less are of no interest to a
// reader, and each write costs as much as a quick turn itself: a file system
// may flush data on a replacing rename.
const quiet = 100 * time.Millisecond

// soon reports that something was written less than quiet ago, and sees to it
// that what is pending is written when that time is over. The caller holds mu.
func (c *Context) soon(last time.Time) bool {
	wait := quiet - c.store.Now().Sub(last)
	if wait <= 0 || wait > quiet {
		return false
	}
	if !c.flushing {
		c.flushing = true
		c.flush.Reset(wait)
	}
	return true
}

// Activity notes in state.json what the run is about to do (store-v2 §3.2). It
// is replaced without a sync: it informs people and is not a checkpoint. Notes
// that follow each other within 100 ms are written as one, the latest.
func (c *Context) Activity(status, activity string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	c.state.Status, c.state.LastActivity = status, activity
	if c.pending = c.soon(c.saved); c.pending {
		return nil
	}
	return c.saveState(false)
}

// TurnDone brings the row up to date, at most once per turn and per 100 ms;
// what is left out is written soon after. The error is ErrNotOwner or nil: any
// other trouble with the index is reported and mended later.
func (c *Context) TurnDone(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rowBehind = c.soon(c.rowAt); c.rowBehind {
		return c.lost
	}
	return c.putRow(ctx)
}

func (c *Context) putRow(ctx context.Context) error {
	c.rowAt, c.rowBehind = c.store.Now(), false
	err := c.store.putRow(ctx, c.meta, c.state)
	if errors.Is(err, ErrNotOwner) {
		c.lost = err
		return err
	}
	return nil
}

// Checkpoint makes state.json durable: how far each file is good.
func (c *Context) Checkpoint() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usable() != nil {
		return nil
	}
	return c.saveState(true)
}

func (c *Context) saveState(durable bool) error {
	now := c.store.now()
	if !c.since.IsZero() {
		c.state.ActiveMS += max(now.Sub(c.since.Time).Milliseconds(), 0) // the clock may be set back
	}
	c.since, c.state.UpdatedAt, c.state.MessageCount = now, now, c.messages.seq
	c.state.Bytes = c.messages.Size() + c.tools.Size() + c.window.Size() + c.checks.Size()
	if durable {
		// Only synced lengths may be trusted after a power cut; tools.jsonl is
		// not synced by a turn.
		if err := errors.Join(c.intact(), c.syncAll()); err != nil {
			return err
		}
		c.state.Files = map[string]Mark{
			Messages: {c.messages.Size(), c.messages.seq},
			Tools:    {c.tools.Size(), c.tools.seq},
			Window:   {c.window.Size(), c.window.seq},
			Checks:   {c.checks.Size(), c.checks.seq},
		}
	}
	b, err := jsonl.Append(nil, c.state)
	if err != nil {
		return err
	}
	c.saved, c.pending = now.Time, false
	path := filepath.Join(c.dir, StateFile)
	if c.store.NoSync {
		return c.store.FS.Replace(path, b, false)
	}
	if durable {
		if err := c.store.FS.Replace(path, b, true); err != nil {
			return err
		}
		c.durable = b
		return nil
	}
	// What is replaced without a sync can come out of a power cut as NULs, and
	// what was committed before would be gone with it.
	if c.durable != nil {
		if err := c.store.FS.Replace(filepath.Join(c.dir, keptFile), c.durable, true); err != nil {
			return err
		}
		c.durable = nil
	}
	return c.store.FS.Replace(path, b, false)
}

// intact notices that somebody removed, replaced or cut a log while it is
// written: what goes on into the open file would be seen by nobody.
func (c *Context) intact() error {
	for name, f := range map[string]*logFile{Messages: c.messages, Tools: c.tools, Window: c.window, Checks: c.checks} {
		path := filepath.Join(c.dir, name)
		if st, err := disk.Stat(path); err != nil || st.Size() != f.Size() {
			if !c.lock.Held(filepath.Join(c.dir, LockFile)) {
				return fmt.Errorf("%s: %w", c.meta.UUID, ErrNotOwner)
			}
			return i18n.E("contextstore.log_changed", path)
		}
	}
	return nil
}

func (c *Context) syncAll() error {
	if c.store.NoSync {
		return nil
	}
	for _, f := range []*logFile{c.messages, c.tools, c.window} {
		if f == c.window && !f.unsynced { // most decisions are synced as they are made
			continue
		}
		if err := f.Sync(); err != nil {
			return err
		}
		f.unsynced = false
	}
	return nil
}

// beat keeps heartbeat and checkpoint fresh until the context is closed.
func (c *Context) beat(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	defer c.flush.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.flush.C:
			c.mu.Lock()
			c.flushing = false
			if c.usable() == nil && c.pending {
				_ = c.saveState(false)
			}
			if c.usable() == nil && c.rowBehind {
				_ = c.putRow(context.Background()) // ErrNotOwner is told by the next TurnDone
			}
			c.mu.Unlock()
		case <-t.C:
			c.store.checkIndex(context.Background())
			c.mu.Lock()
			c.rest()
			if c.lost == nil && !c.ended && !c.lock.Held(filepath.Join(c.dir, LockFile)) {
				c.lost = fmt.Errorf("%s of %s was removed or replaced: %w", LockFile, c.meta.UUID, ErrNotOwner)
			}
			if c.usable() == nil {
				c.lock.owner.HeartbeatAt = c.store.now()
				_ = c.lock.tell()     // for people; the kernel lock is what counts
				_ = c.saveState(true) // a lasting fault shows at the next append
				_ = c.putRow(context.Background())
			}
			c.mu.Unlock()
		}
	}
}

// Messages reads the messages from a byte offset of messages.jsonl on and calls
// f for each, until f returns false. A line that is no message is passed over:
// the numbers of those around it tell that something is lost.
func (c *Context) Messages(offset int64, f func(m Message) bool) error {
	c.mu.Lock()
	end := c.messages.Size()
	c.mu.Unlock()
	return jsonl.Each(&gentle{io.NewSectionReader(c.messages, offset, end-offset), firstGentle}, func(at int64, line []byte) bool {
		m, err := DecodeMessage(line)
		if err != nil {
			return true
		}
		m.Offset = offset + at
		return f(m)
	})
}

// LastWindow returns the latest window event that can be read, nil where there is
// none.
func (c *Context) LastWindow() (last *WindowEvent, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = jsonl.Back(c.window, c.window.Size(), func(_ int64, b []byte) bool {
		var e WindowEvent
		if json.Unmarshal(b, &e) == nil {
			last = &e
		}
		return last == nil
	})
	return last, err
}

// Checks returns the check runs so far that can be read, oldest first. There are a
// few per run.
func (c *Context) Checks() ([]CheckRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []CheckRun
	err := jsonl.Each(io.NewSectionReader(c.checks, 0, c.checks.Size()), func(_ int64, b []byte) bool {
		var r CheckRun
		if json.Unmarshal(b, &r) == nil {
			all = append(all, r)
		}
		return true
	})
	return all, err
}

// Close gives a context up without ending it: the next owner may claim it.
func (c *Context) Close() error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return nil
	}
	err := c.lost
	if err == nil {
		err = c.saveState(true)
	}
	c.ended = true
	c.mu.Unlock()
	c.shut()
	return err
}

// shut stops the heartbeat, closes the files and releases the lock, once.
func (c *Context) shut() {
	if c.stop != nil {
		close(c.stop)
		c.done.Wait()
		c.stop = nil
	}
	for _, f := range []*logFile{c.messages, c.tools, c.window, c.checks} {
		if f != nil {
			_ = f.Close()
		}
	}
	if c.work != nil {
		_ = c.work.Close() // a child that still runs goes on holding it
	}
	c.lock.Release()
}

// Committed records durably that the work up to an answer is in a commit, ""
// where it changed nothing.
func (c *Context) Committed(seq int64, commit string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	c.state.CommittedSeq, c.state.Commit = seq, commit
	return c.saveState(true)
}
