package contextstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Claim takes ownership of a queued or paused context, or of a running one
// whose owner is gone, and moves it to running/ (PROTOCOL "Claim"). It repairs
// torn ends of files and returns, for people, what it mended. ErrBusy: another
// process owns it. ErrEnded: it is completed, stopped or failed.
func (s *Store) Claim(ctx context.Context, uuid string) (*Context, []string, error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return nil, nil, err
	}
	now := s.now()
	l, err := acquire(filepath.Join(dir, lockFile), Owner{ProcessID: os.Getpid(), Hostname: s.hostname, AcquiredAt: now, HeartbeatAt: now, BootID: s.boot})
	if errors.Is(err, errLocked) {
		owner, _ := ReadOwner(dir)
		return nil, nil, i18n.E("contextstore.busy", uuid, owner.ProcessID, owner.Hostname, ErrBusy)
	}
	if err != nil {
		return nil, nil, i18n.E("contextstore.claim", uuid, err)
	}
	c := &Context{store: s, dir: dir, lock: l}
	repairs, err := c.claim(ctx)
	if err != nil {
		c.shut()
		return nil, repairs, err
	}
	c.stop = make(chan struct{})
	c.flush = time.NewTimer(time.Hour)
	c.done.Go(func() { c.beat(s.Heartbeat) })
	return c, repairs, nil
}

func (c *Context) claim(ctx context.Context) (repairs []string, err error) {
	if c.meta, err = ReadMetadata(c.dir); err != nil {
		return nil, fmt.Errorf("claim %s: %w", filepath.Base(c.dir), err)
	}
	c.state, err = ReadState(c.dir)
	if err != nil {
		// An unsynced replace may be lost with the power; the files tell the rest.
		repairs = append(repairs, fmt.Sprintf("%s was unreadable (%v) and is rebuilt from the files", stateFile, err))
		c.state = State{Status: Processing, TaskStatus: task.Running}
	}
	if c.state.TaskStatus.Final() {
		if err := c.finishEnded(ctx); err != nil {
			return repairs, fmt.Errorf("finish the end of %s: %w", c.meta.UUID, err)
		}
		return repairs, ErrEnded
	}
	fixed, err := c.openFiles()
	repairs = append(repairs, fixed...)
	if err != nil {
		return repairs, fmt.Errorf("claim %s: %w", c.meta.UUID, err)
	}
	g, err := c.store.index.generation(ctx, c.meta.UUID)
	c.store.tell(err)
	now := c.store.now()
	c.since = now
	c.state.Generation = max(g, c.state.Generation) + 1
	c.state.TaskStatus, c.state.Status, c.state.Phase = task.Running, Processing, ""
	c.state.LastActivity, c.state.Error = "claimed", nil
	c.state.ProcessID, c.state.Hostname = os.Getpid(), c.store.hostname
	if c.state.StartedAt.IsZero() {
		c.state.StartedAt = now
	}
	if err := c.saveState(true); err != nil {
		return repairs, i18n.E("contextstore.claim", c.meta.UUID, err)
	}
	to := filepath.Join(c.store.BaseDir, dirRunning, c.meta.UUID)
	if c.dir != to {
		if err := c.store.FS.Rename(c.dir, to); err != nil {
			return repairs, i18n.E("contextstore.claim", c.meta.UUID, err)
		}
		c.dir = to
		for _, f := range []*logFile{c.messages, c.tools, c.window, c.checks} {
			f.Moved(to)
		}
	}
	return repairs, c.putRow(ctx)
}

// finishEnded completes a transition whose commit point was passed.
func (c *Context) finishEnded(ctx context.Context) error {
	if c.state.Phase != phaseEnding && filepath.Base(filepath.Dir(c.dir)) == dirCompleted {
		return c.store.FS.Remove(filepath.Join(c.dir, lockFile))
	}
	return c.finish(ctx)
}

// openFiles opens the logs, mends their ends, and brings the counters up to
// what the files hold. It reads only what came after the last checkpoint.
func (c *Context) openFiles() (repairs []string, err error) {
	mark := c.state.Files
	report := func(s string) { repairs = append(repairs, s) }
	if err := c.lastTokens(mark[messagesFile]); err != nil {
		report(err.Error())
		mark = nil
	}
	open := func(name string, line func([]byte) error) *logFile {
		if err != nil {
			return nil
		}
		m := mark[name]
		f, oerr := c.openLog(name, m.Bytes, m.Seq, line)
		if oerr != nil {
			err = oerr
			return nil
		}
		if f.cut > 0 {
			report(fmt.Sprintf("%s: %d bytes that are no whole line were cut off after line %d and kept in %s.cut", name, f.cut, f.seq, name))
		}
		return f.logFile
	}
	c.messages = open(messagesFile, func(b []byte) error {
		m, err := DecodeMessage(b)
		if err == nil {
			c.tokens = m.Sum
			c.recount(m)
		}
		return err
	})
	c.tools = open(toolsFile, jsonObject)
	c.window = open(windowFile, jsonObject)
	c.checks = open(checksFile, jsonObject)
	if err != nil {
		return repairs, err
	}
	c.state.ToolCallCount = c.tools.seq
	c.state.CurrentContextTokens = c.tokens
	return repairs, nil
}

// recount takes into the counters an answer that was appended after state.json
// was last written, so that a kill refills no budget.
func (c *Context) recount(m Message) {
	if m.Seq <= c.state.MessageCount || m.Role != "assistant" {
		return
	}
	c.state.LLMCallCount++
	c.state.TotalTokensUsed += m.Usage.Sum()
}

func jsonObject(b []byte) error {
	if !json.Valid(b) || len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("not a JSON object")
	}
	return nil
}

// lastTokens reads the running total at a checkpoint from the line before it.
func (c *Context) lastTokens(m Mark) error {
	if m.Bytes == 0 {
		return nil
	}
	f, err := os.Open(filepath.Join(c.dir, messagesFile))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var last Message
	_, err = lastLine(f, m.Bytes, func(b []byte) (err error) { last, err = DecodeMessage(b); return err })
	if err == nil && last.Seq != m.Seq {
		err = fmt.Errorf("%s: line %d expected at byte %d, found %d; the checkpoint is ignored", messagesFile, m.Seq, m.Bytes, last.Seq)
	}
	c.tokens = last.Sum
	return err
}

// openedLog is a log with the bytes that were cut off its end.
type openedLog struct {
	*logFile
	cut int64
}

// openLog opens a log for appending. From the mark on, every line is checked
// by ok; the file is cut at the first that is torn, NUL or no longer a line.
func (c *Context) openLog(name string, from, seq int64, ok func([]byte) error) (*openedLog, error) {
	f, err := c.store.FS.OpenAppend(filepath.Join(c.dir, name))
	if err != nil {
		return nil, err
	}
	l := &openedLog{logFile: &logFile{File: f, seq: seq}}
	if from > f.Size() {
		from, l.seq = 0, 0 // the file is shorter than the checkpoint says: check all of it
	}
	good := from
	err = lines(io.NewSectionReader(f, from, f.Size()-from), func(at int64, b []byte) bool {
		if ok != nil && ok(b) != nil {
			return false
		}
		good = from + at + int64(len(b)) + 1
		l.seq++
		return good <= f.Size() // the last line may lack its newline
	})
	switch {
	case err != nil:
	case good > f.Size(): // only the newline of the last line is missing
		_, err = f.Append([]byte("\n"))
	case good < f.Size():
		l.cut = f.Size() - good
		if err = c.setAside(name, io.NewSectionReader(f, good, l.cut)); err == nil {
			err = f.Truncate(good)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return l, nil
}

// setAside keeps what is cut off a file: a line that cannot be read here may
// still tell a person something.
func (c *Context) setAside(name string, r io.Reader) error {
	f, err := c.store.FS.OpenAppend(filepath.Join(c.dir, name+".cut"))
	if err != nil {
		return err
	}
	buf := make([]byte, block)
	for {
		n, rerr := r.Read(buf)
		if n > 0 {
			if _, err := f.Append(buf[:n]); err != nil {
				return errors.Join(err, f.Close())
			}
		}
		if errors.Is(rerr, io.EOF) {
			return errors.Join(f.Sync(), f.Close())
		}
		if rerr != nil {
			return errors.Join(rerr, f.Close())
		}
	}
}
