package contextstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/jsonl"
)

// AppendSummary writes the summary of messages s.StartSeq to s.EndSeq, which are
// summarized from then on, and returns it as it was written: numbered, timed,
// redacted, with its ratio. It is synced, and so is state.json with the count
// of compressions. Tokens that are 0 are counted. The range must lie within
// what was appended, and the text must not be empty. Source: store-v3 §4.3
// add_summary, §7.4.
func (c *Context) AppendSummary(s Summary) (Summary, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return Summary{}, err
	}
	s, err := c.addSummary(s)
	if err != nil {
		return Summary{}, fmt.Errorf("append summary of messages %d to %d of %s: %w", s.StartSeq, s.EndSeq, c.meta.UUID, err)
	}
	return s, nil
}

func (c *Context) addSummary(s Summary) (Summary, error) {
	switch {
	case s.StartSeq < 1 || s.EndSeq < s.StartSeq:
		return s, errors.New("the range must begin at 1 or later and not end before it begins")
	case s.EndSeq > c.messages.seq:
		return s, fmt.Errorf("the last message is %d", c.messages.seq)
	case strings.TrimSpace(s.Summary) == "":
		return s, errors.New("the text is empty")
	}
	if s.OriginalTokens == 0 {
		l := c.MessageLog()
		n, err := l.tokens(l.live(), s.StartSeq, s.EndSeq)
		if err != nil {
			return s, l.wrap(err)
		}
		s.OriginalTokens = n
	}
	f, err := c.openSummaries()
	if err != nil {
		return s, err
	}
	defer func() { _ = f.Close() }()
	s.Final = false
	if s, err = c.putSummary(f, s); err != nil {
		return s, err
	}
	c.state.CompressionCount = max(c.state.CompressionCount, f.applied) + 1
	// The summary stands whatever becomes of the counter: it is counted again
	// from the file, and a lasting fault shows at the next append.
	_ = c.saveState(true)
	return s, nil
}

// summaryLog is summaries.jsonl, open for appending.
type summaryLog struct {
	*openedLog
	last    Summary
	applied int64 // summaries that are not final
}

// openSummaries opens the file for a moment: summaries are rare, and it is
// short. Its end is mended like that of the other logs.
func (c *Context) openSummaries() (*summaryLog, error) {
	var log summaryLog
	var s Summary
	f, err := c.openLog(Summaries, 0, 0, func(b []byte) (id int64, err error) {
		s, err = DecodeSummary(b)
		return s.ID, err
	}, func() {
		log.last = s
		if !s.Final {
			log.applied++
		}
	})
	log.openedLog = f
	if err == nil && f.Size() == 0 && !c.store.NoSync {
		// The file may be new, and what follows rests on it. After the line it
		// would be too late: an error must leave nothing behind.
		if err = c.store.FS.SyncDir(c.dir); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return &log, err
}

// putSummary is the one way a summary is written.
func (c *Context) putSummary(f *summaryLog, s Summary) (Summary, error) {
	s.ID, s.Timestamp, s.Summary, s.AnsweredBy = f.seq+1, c.store.now().Written(), c.clean(s.Summary), c.clean(s.AnsweredBy)
	if s.SummaryTokens == 0 {
		s.SummaryTokens = int64(CountTokens(s.Summary))
	}
	s.Ratio = 0
	if s.OriginalTokens > 0 {
		s.Ratio = math.Round(1000*float64(s.SummaryTokens)/float64(s.OriginalTokens)) / 1000
	}
	c.asides.put(&s)
	line, err := jsonl.Append(nil, s)
	if err == nil {
		err = c.write(f.logFile, line, true)
	}
	if err == nil {
		c.asides = asides{}
	}
	return s, err
}

// finalSummary appends the summary of the whole run, unless an earlier attempt
// at this transition already did. Of several the last one holds: an attempt
// that was not committed may have had another outcome.
func (c *Context) finalSummary(o task.Outcome) error {
	f, err := c.openSummaries()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	outcome := string(o.Status)
	switch {
	case o.Unverified && o.Status == task.Completed:
		outcome = Unverified
	case o.TimedOut && o.Status == task.Failed:
		outcome = Timeout
	}
	if f.last.Final && f.last.Outcome == outcome && f.last.Summary == c.clean(o.Summary) && f.last.EndSeq == c.messages.seq {
		return nil
	}
	_, err = c.putSummary(f, Summary{StartSeq: min(1, c.messages.seq), EndSeq: c.messages.seq, Summary: o.Summary, OriginalTokens: c.tokens, Final: true, Outcome: outcome, Extractive: true})
	return err
}

// AppendFinal writes the summary that a model gave of a run that is over, behind
// the one that its Transition wrote; where a model's stands there already, nothing.
// Of sum its text, AnsweredBy and Usage are taken. The call is counted, in
// state.json before the line is written: a crash in between has it made again, and
// both were made. With an empty text the summary of the Transition stands, and the
// call is counted all the same. Source: inherit §4.4.
func (s *Store) AppendFinal(ctx context.Context, uuid string, sum Summary) error {
	dir, err := s.dir(uuid)
	if err != nil {
		return err
	}
	unlock, err := LockState(ctx, dir, s.StateLockTimeout)
	if err != nil {
		return err
	}
	defer unlock()
	c := &Context{store: s, dir: dir}
	if c.meta, err = ReadMetadata(dir); err == nil {
		c.state, err = ReadState(dir)
	}
	if err == nil && (!c.state.TaskStatus.Final() || c.state.Phase != "") {
		err = fmt.Errorf("it is %s, and not over", c.state.TaskStatus)
	}
	if err != nil {
		return fmt.Errorf("append final summary of %s: %w", uuid, err)
	}
	f, err := c.openSummaries()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	was := f.last
	if !was.Final || !was.Extractive {
		return nil
	}
	if was.Usage = nil; strings.TrimSpace(sum.Summary) != "" {
		was.Summary, was.AnsweredBy, was.Extractive, was.SummaryTokens = sum.Summary, sum.AnsweredBy, false, 0
	} else if sum.Usage == nil {
		return nil
	}
	c.spent(sum.Usage)
	line, err := jsonl.Append(nil, c.state)
	if err == nil {
		err = s.FS.Replace(filepath.Join(dir, StateFile), line, !s.NoSync)
	}
	if err == nil {
		_, err = c.putSummary(f, was)
	}
	if err != nil {
		return fmt.Errorf("append final summary of %s: %w", uuid, err)
	}
	s.textsChanged(uuid)
	if err := c.putRow(ctx); !errors.Is(err, ErrNotOwner) {
		return nil // was told
	}
	return err
}

// Summarised reports whether the final summary of a run is a model's.
func (v View) Summarised() (bool, error) {
	s, err := v.LastFinal()
	return s != nil && !s.Extractive, err
}

// LatestSummary returns the latest summary that the window applies, nil where
// there is none: the final one is not for the window. Source: store-v3 §4.3
// get_latest_summary.
func (c *Context) LatestSummary() (*Summary, error) { return c.lastSummary(applied) }

// LatestSummary is Context.LatestSummary, read from outside.
func (v View) LatestSummary() (*Summary, error) { return lastSummary(v.Dir, applied) }

// SummaryOf returns the summary with an id, nil where there is none or it cannot
// be read. It reads back from the end.
func (c *Context) SummaryOf(id int64) (*Summary, error) {
	return c.lastSummary(func(s Summary) bool { return s.ID == id })
}

func applied(s Summary) bool { return !s.Final }

func (c *Context) lastSummary(want func(Summary) bool) (*Summary, error) {
	c.mu.Lock() // the directory does not move meanwhile
	defer c.mu.Unlock()
	return lastSummary(c.dir, want)
}

// lastSummary returns the last summary that is wanted, nil if there is none. It
// reads back from the end; a line that is no summary is passed over: the owner
// may be writing it, or mends it before it writes the next one.
func lastSummary(dir string, want func(Summary) bool) (found *Summary, err error) {
	f, err := openExisting(dir, Summaries)
	if f == nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return summaryIn(f, want)
}

// summaryIn is lastSummary of an open file.
func summaryIn(f disk.Plain, want func(Summary) bool) (found *Summary, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	err = jsonl.Back(f, st.Size(), func(_ int64, b []byte) bool {
		if s, err := DecodeSummary(b); err == nil && want(s) {
			found = &s
		}
		return found == nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return found, nil
}

// openExisting opens a log for reading. A missing one is nil (store-v3 §11.2),
// a missing context is an error: it may have been moved since it was found.
func openExisting(dir, name string) (disk.Plain, error) {
	f, err := disk.OpenPlain(filepath.Join(dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if f, err = unzipped(filepath.Join(dir, name+".gz")); !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	_, err = disk.Stat(dir)
	return nil, err
}
