package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
)

// Claim takes ownership of a queued or paused context, or of a running one
// whose owner is gone, and moves it to running/ (PROTOCOL "Claim"). It repairs
// torn ends of files and returns, for people, what it mended. ErrBusy: another
// process owns it. *OrphansError: its owner is gone, children of it are not.
// ErrEnded: it is completed, stopped or failed. *NoSpaceError: the disk is full.
func (s *Store) Claim(ctx context.Context, uuid string) (*Context, []string, error) {
	c, repairs, err := s.take(ctx, uuid)
	if err != nil {
		return nil, repairs, err
	}
	if err := c.claim(ctx, &repairs); err != nil {
		if filepath.Base(filepath.Dir(c.dir)) != DirRunning {
			err = errors.Join(err, s.FS.Remove(filepath.Join(c.dir, LockFile))) // it waits on, without an owner
		}
		c.shut()
		return nil, repairs, err
	}
	// A pause that a dead owner was asked for is done: that it is taken up again
	// is what somebody wants now. A stop stays asked.
	if r, ok := readRequest(c.dir); ok && r.Action == Pause && r.At.Before(c.since.Time) {
		if err := s.FS.Remove(filepath.Join(c.dir, requestFile)); err != nil {
			repairs = append(repairs, err.Error())
		}
	}
	c.stop = make(chan struct{})
	c.flush = time.NewTimer(time.Hour)
	c.done.Go(func() { c.beat(s.Heartbeat) })
	return c, repairs, nil
}

// take locks a context that has no owner, finishes a half-done transition, and
// opens its files. What it returns is not yet the caller's own: see begin.
func (s *Store) take(ctx context.Context, uuid string) (*Context, []string, error) {
	c, err := s.hold(uuid)
	if err != nil {
		return nil, nil, err
	}
	repairs, err := c.load(ctx)
	if err != nil {
		c.shut()
		return nil, repairs, err
	}
	return c, repairs, nil
}

// moves is how often a context may be found in one directory and be in another
// when it is locked.
const moves = 30

// hold takes the two locks of a context.
func (s *Store) hold(uuid string) (*Context, error) {
	return InDir(s.BaseDir, uuid, s.holdAt)
}

// InDir calls f with the directory of a context below a base directory, again where the
// context was moved to another before f was through with it: f's error then wraps
// fs.ErrNotExist.
func InDir[T any](base, uuid string, f func(dir string) (T, error)) (v T, err error) {
	for n := 1; ; n++ {
		dir, err := FindDir(base, uuid)
		if err != nil {
			return v, err
		}
		if v, err = f(dir); !errors.Is(err, os.ErrNotExist) || n == moves {
			return v, err
		}
	}
}

// locked reports whether a context has a .lock, held or left behind.
func locked(dir string) bool {
	return disk.Exists(filepath.Join(dir, LockFile))
}

func (s *Store) holdAt(dir string) (*Context, error) {
	uuid := filepath.Base(dir)
	flags := os.O_CREATE
	if filepath.Base(filepath.Dir(dir)) == DirCompleted {
		// Of what is over no lock is made, which a kill would leave behind.
		if st, err := ReadState(dir); err == nil && st.TaskStatus.Final() && st.Phase == "" {
			if flags = 0; !locked(dir) {
				return nil, ErrEnded
			}
		}
	}
	if o, ok := s.ownedWithoutLock(dir); ok {
		return nil, i18n.E("contextstore.busy", uuid, o.ProcessID, o.Hostname).Of(ErrBusy)
	}
	l, err := acquire(filepath.Join(dir, LockFile), flags, newOwner(s.Now()))
	if errors.Is(err, filelock.ErrLocked) {
		owner, _ := ReadOwner(dir)
		return nil, i18n.E("contextstore.busy", uuid, owner.ProcessID, owner.Hostname).Of(ErrBusy)
	}
	if flags == 0 && errors.Is(err, os.ErrNotExist) && disk.Exists(dir) {
		return nil, ErrEnded // its owner was just leaving
	}
	if err != nil {
		return nil, i18n.E("contextstore.claim", uuid, err)
	}
	tighten(dir)
	c := &Context{store: s, dir: dir, lock: l}
	if disk.At(dir) != nil { // else it is the context's own
		err = os.MkdirAll(filepath.Dir(workPath(dir)), disk.DirMode)
	}
	if err == nil {
		c.work, err = lockWork(workPath(dir))
	}
	if err != nil {
		c.shut()
		if errors.Is(err, filelock.ErrLocked) {
			return nil, s.workHeld(dir)
		}
		return nil, i18n.E("contextstore.claim", uuid, err)
	}
	return c, nil
}

// startWait is how long a child that is being started may keep a copy of
// descriptors that are not meant for it.
const startWait = 250 * time.Millisecond

// lockWork takes work.lock. It asks again for a moment: a process that gave the
// context up may have been starting a child for another one.
func lockWork(path string) (f *os.File, err error) {
	for end := time.Now().Add(startWait); ; time.Sleep(5 * time.Millisecond) {
		if f, err = filelock.Open(path, os.O_CREATE); !errors.Is(err, filelock.ErrLocked) || time.Now().After(end) {
			return f, err
		}
	}
}

// workHeld tells a live owner, whose .lock somebody removed, from children of
// a dead one.
func (s *Store) workHeld(dir string) error {
	uuid := filepath.Base(dir)
	pids, err := holders(workPath(dir))
	st, serr := ReadState(dir)
	if serr == nil && st.BootID == s.boot && (st.ProcessID == os.Getpid() || slices.Contains(pids, st.ProcessID)) {
		return i18n.E("contextstore.busy", uuid, st.ProcessID, st.Hostname).Of(ErrBusy)
	}
	return errors.Join(orphansError(uuid, pids), err)
}

// load reads what the last owner left, finishes what they had committed, and
// mends the ends of the logs.
func (c *Context) load(ctx context.Context) (repairs []string, err error) {
	if c.meta, err = ReadMetadata(c.dir); err != nil {
		return nil, fmt.Errorf("claim %s: %w", filepath.Base(c.dir), err)
	}
	if c.meta.UUID != filepath.Base(c.dir) {
		return nil, i18n.E("contextstore.other_uuid", filepath.Join(c.dir, MetadataFile), c.meta.UUID)
	}
	c.state, err = ReadState(c.dir)
	if err != nil {
		// An unsynced replace may be lost with the power; the files tell the rest.
		from := "the files"
		if c.state.TaskStatus.Valid() {
			from = "its last checkpoint and the files"
		} else {
			c.state = State{Status: Processing, TaskStatus: View{Dir: c.dir}.Status()}
		}
		repairs = append(repairs, fmt.Sprintf("%s was unreadable (%v) and is rebuilt from %s", StateFile, err, from))
	} else if !c.state.TaskStatus.Valid() {
		c.state.TaskStatus = View{Dir: c.dir, State: c.state}.Status() // written by an earlier edition
	}
	did, err := c.finishHalf(ctx)
	if err != nil {
		return repairs, err
	}
	if did {
		repairs = append(repairs, "the transition to "+string(c.state.TaskStatus)+" was half done and is finished")
	}
	if c.state.TaskStatus.Final() {
		return repairs, errors.Join(ErrEnded, c.leave(ctx))
	}
	fixed, err := c.openFiles()
	repairs = append(repairs, fixed...)
	if err != nil {
		return repairs, fmt.Errorf("claim %s: %w", c.meta.UUID, err)
	}
	return repairs, nil
}

// begin makes this process the owner that what is written next is by.
func (c *Context) begin() {
	c.since = c.store.now()
	c.state.Generation++
	c.state.ProcessID, c.state.Hostname = os.Getpid(), c.store.hostname
}

// claim makes a context that was taken the caller's to run.
func (c *Context) claim(ctx context.Context, repairs *[]string) error {
	if err := c.store.room(); err != nil {
		return err
	}
	c.begin()
	if c.state.BootID != "" && c.state.BootID != c.store.boot {
		c.rebooted = true
		*repairs = append(*repairs, "the machine was restarted since: files of the workspace written shortly before may be missing or incomplete")
	}
	if c.state.TaskStatus == task.Running {
		c.state.Recoveries++
	}
	c.state.TaskStatus, c.state.Status, c.state.Phase = task.Running, Processing, ""
	c.state.LastActivity, c.state.Error, c.state.BootID = "claimed", nil, c.store.boot
	if c.state.StartedAt.IsZero() {
		c.state.StartedAt = c.since
	}
	if err := c.saveState(true); err != nil {
		return i18n.E("contextstore.claim", c.meta.UUID, err)
	}
	to := filepath.Join(c.store.BaseDir, DirRunning, c.meta.UUID)
	if c.dir != to {
		if err := c.store.FS.Rename(c.dir, to); err != nil {
			return i18n.E("contextstore.claim", c.meta.UUID, err)
		}
		c.dir = to
		for _, f := range []*logFile{c.messages, c.tools, c.window, c.checks} {
			f.Moved(to)
		}
	}
	return c.putRow(ctx)
}

// Rebooted reports that the machine was restarted since the last owner worked:
// what was not synced, as the files of the workspace, may be lost.
func (c *Context) Rebooted() bool { return c.rebooted }

// WorkLock is the open work.lock, to be inherited by every child process. It
// belongs to the context.
func (c *Context) WorkLock() *os.File { return c.work }

// openFiles opens the logs, mends their ends, and brings the counters up to
// what the files hold. It reads only what came after the last checkpoint.
func (c *Context) openFiles() (repairs []string, err error) {
	mark := c.state.Files
	report := func(s string) { repairs = append(repairs, s) }
	if err := c.lastTokens(mark[Messages]); err != nil {
		report(err.Error())
		mark = nil
	}
	open := func(name string, number func([]byte) (int64, error), took func()) *logFile {
		if err != nil {
			return nil
		}
		m := mark[name]
		f, oerr := c.openLog(name, m.Bytes, m.Seq, number, took)
		if oerr != nil {
			err = oerr
			return nil
		}
		if f.bad > 0 {
			report(fmt.Sprintf("%s: %d lines cannot be read; what follows them is kept; see tori check", name, f.bad))
		}
		if f.astray {
			report(fmt.Sprintf("%s: its lines are not numbered one after the other; the next is %d; see tori check", name, f.seq+1))
		}
		if f.cut > 0 {
			report(fmt.Sprintf("%s: %d bytes that are no whole line were cut off after line %d and kept in %s.cut", name, f.cut, f.seq, name))
		}
		return f.logFile
	}
	var m Message
	c.messages = open(Messages, func(b []byte) (seq int64, err error) {
		m, err = DecodeMessage(b)
		return m.Seq, err
	}, func() {
		c.tokens = m.Sum
		c.recount(m)
	})
	c.tools = open(Tools, numbered, nil)
	c.window = open(Window, numbered, nil)
	c.checks = open(Checks, numbered, nil)
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
	if m.Seq <= c.state.MessageCount || !m.IsAnswer() {
		return
	}
	c.state.LLMCallCount++
	c.state.TotalTokensUsed += m.Usage.Sum()
	c.state.Add(m.Usage.Spending())
}

// numbered decodes the number of a line: seq, or the id of a decision.
func numbered(b []byte) (int64, error) {
	var l struct{ Seq, ID int64 }
	err := jsonl.Decode(b, &l)
	return max(l.Seq, l.ID), err
}

// lastTokens reads the running total at a checkpoint from the line before it.
func (c *Context) lastTokens(m Mark) error {
	if m.Bytes == 0 {
		return nil
	}
	f, err := disk.OpenPlain(filepath.Join(c.dir, Messages))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var last Message
	rerr := jsonl.Back(f, m.Bytes, func(_ int64, b []byte) bool { last, err = DecodeMessage(b); return false })
	err = errors.Join(err, rerr)
	if err == nil && last.Seq != m.Seq {
		err = fmt.Errorf("%s: line %d expected at byte %d, found %d; the checkpoint is ignored", Messages, m.Seq, m.Bytes, last.Seq)
	}
	c.tokens = last.Sum
	return err
}

// openedLog is a log as it was found behind its mark.
type openedLog struct {
	*logFile
	cut    int64 // bytes that were cut off its end
	bad    int64 // lines within it that cannot be read
	astray bool  // a number does not follow the one before it: another writer's
}

// openLog opens a log for appending. From the mark on, number decodes each line and
// returns its number, 0 for one without; took, which may be nil, hears that it stays.
// What no whole line follows is cut off: it was never acknowledged. A bad line which
// others follow was damaged later: it stays where it is and counts as the line that it
// was. NULs that are in no line's place, as the number behind them tells, are what a
// power cut leaves of a write that was never acknowledged, nor was what follows; in
// tools.jsonl, whose lines are not synced one after the other, any NUL is.
func (c *Context) openLog(name string, from, seq int64, number func([]byte) (int64, error), took func()) (*openedLog, error) {
	f, err := c.store.FS.OpenAppend(filepath.Join(c.dir, name))
	if err != nil {
		return nil, err
	}
	l := &openedLog{logFile: &logFile{File: f, seq: seq}}
	if from > f.Size() {
		from, l.seq = 0, 0 // the file is shorter than the checkpoint says: check all of it
	}
	good, bad, nul := from, int64(0), false
	err = jsonl.Each(io.NewSectionReader(f, from, f.Size()-from), func(at int64, b []byte) bool {
		n, err := number(b)
		if err != nil {
			bad++
			nul = len(bytes.Trim(b, "\x00")) == 0
			return name != Tools || bytes.IndexByte(b, 0) < 0
		}
		if nul && n == l.seq+1 {
			return false
		}
		good = from + at + int64(len(b)) + 1
		follows := l.seq + 1 + bad
		if n == 0 {
			n = follows
		}
		l.astray = l.astray || n != follows
		l.seq = max(l.seq, n)
		l.bad, bad, nul = l.bad+bad, 0, false
		if took != nil {
			took()
		}
		return good <= f.Size() // the last line may lack its newline
	})
	if err == nil {
		l.cut = max(f.Size()-good, 0)
		err = jsonl.RepairEnd(c.store.FS, filepath.Join(c.dir, name), f, good)
	}
	if err == nil && from < f.Size() && !c.store.NoSync {
		// A killed owner may have left it in the page cache only, and from here
		// on this one's work rests on it.
		err = f.Sync()
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return l, nil
}
