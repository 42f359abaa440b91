package planning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
)

// HistoryFile is where the planning history of a run lies: below the run's own
// directory, or, with planning.history.directory, in that directory, which is
// below base where it is relative. A relative answer is one from the run's
// directory. Source: spec/README "where planning history lives".
func HistoryFile(base, directory, uuid string) string {
	switch {
	case directory == "":
		return filepath.Join("planning", uuid+".jsonl")
	case filepath.IsAbs(directory):
		return filepath.Join(directory, uuid+".jsonl")
	}
	return filepath.Join(base, directory, uuid+".jsonl")
}

// HistoryDir is where the histories of all runs lie, absolute; "" where each lies with its run.
func HistoryDir(base, directory string) string {
	if file := HistoryFile(base, directory, "x"); filepath.IsAbs(file) {
		return filepath.Dir(file)
	}
	return ""
}

// HistoryOptions configure a History.
type HistoryOptions struct {
	File string           // HistoryFile's answer; an absolute one must be of this run alone
	Now  func() time.Time // must be set
	// Heard is told each new entry once it is written, in order; may be nil.
	Heard func(Entry)
	// Warn hears of lines that are passed over because they are damaged; may be nil.
	Warn func(error)
}

// How far back Open looks for what was recorded last. What a killed owner may
// record once more is of its last answer, which gave a few entries.
const (
	openLines = 256
	openBytes = 1 << 20
)

// History is planning/{uuid}.jsonl of a run, in the hands of the run's owner
// (plan §2.2). Its methods may be called from several goroutines.
type History struct {
	j    *contextstore.Journal
	o    HistoryOptions
	meta contextstore.Metadata

	mu   sync.Mutex
	seen []string // keys of the latest entries, at most openLines
}

// OpenHistory opens the planning history of a run, and makes it where it is
// missing. It mends the end of the file and returns, for people, what it mended.
// Its work does not grow with the length of the history. The caller closes it
// before it gives the context up; the file moves with the context.
func OpenHistory(c *contextstore.Context, o HistoryOptions) (*History, []string, error) {
	j, fixed, err := c.OpenJournal(o.File)
	h := &History{j: j, o: o, meta: c.Metadata()}
	if err != nil {
		return nil, nil, h.wrap(err)
	}
	lines, size := 0, 0
	err = j.Back(func(line []byte) bool {
		e, _ := h.decode(line)
		h.note(e)
		lines++
		size += len(line)
		return lines < openLines && size < openBytes
	})
	if err != nil {
		return nil, fixed, errors.Join(h.wrap(err), j.Close())
	}
	slices.Reverse(h.seen) // oldest first
	return h, fixed, nil
}

func (h *History) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
	}
	return err
}

// note remembers an entry. The caller holds mu, or has the only hold on h.
func (h *History) note(e Entry) {
	if k := e.key(); k != "" {
		h.seen = append(h.seen, k)
	}
	h.seen = latest(h.seen, openLines)
}

// Append writes entries after the last one, with their time, issue and run
// filled in and their texts redacted. All that it writes is on disk at Close; on
// an error none of it is. An entry whose Seq and subject were recorded already is
// not written again: a resumed run may take its last answers once more. written is
// how many were new.
func (h *History) Append(entries ...Entry) (written int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fresh []Entry
	var lines []contextstore.Line
	known := slices.Clone(h.seen)
	for _, e := range entries {
		e.Timestamp = contextstore.Time{Time: h.o.Now()}
		e.IssueID, e.TaskUUID = h.meta.TaskKey.ID, h.meta.UUID
		line, err := h.j.Encode(e)
		if err != nil {
			return 0, h.wrap(err)
		}
		// Told apart as it will be read, and readable before it counts as written.
		stored, err := DecodeEntry(line.Text())
		if err != nil {
			return 0, h.wrap(err)
		}
		k := stored.key()
		if k != "" && slices.Contains(known, k) {
			continue
		}
		fresh, lines, known = append(fresh, stored), append(lines, line), append(known, k)
	}
	if err := h.j.Note(lines...); err != nil {
		return 0, h.wrap(err)
	}
	for _, e := range fresh {
		h.note(e)
		if h.o.Heard != nil {
			h.o.Heard(e)
		}
	}
	return len(fresh), nil
}

// Latest is the last entry that is wanted, nil where there is none. It reads
// back from the end.
func (h *History) Latest(want func(*Entry) bool) (found *Entry, err error) {
	err = h.j.Back(func(line []byte) bool {
		if e, ok := h.decode(line); ok && want(&e) {
			found = &e
		}
		return found == nil
	})
	return found, h.wrap(err)
}

// Close releases the file.
func (h *History) Close() error { return h.j.Close() }

func (h *History) decode(line []byte) (Entry, bool) {
	return decodeLine(h.o.File, contextstore.JournalLine{Bytes: int64(len(line)) + 1, Text: line, Ended: true}, h.o.Warn)
}

var errTooLong = fmt.Errorf("longer than a line may be, %d bytes", contextstore.MaxJournalLine)

// decodeLine reads a line; one that is none is told. Blank lines and a last one
// that is being written are not worth a word.
func decodeLine(file string, l contextstore.JournalLine, warn func(error)) (e Entry, ok bool) {
	err := errTooLong
	if l.Text != nil {
		e, err = DecodeEntry(l.Text)
	}
	if err != nil && l.Ended && warn != nil && (l.Text == nil || len(bytes.TrimSpace(l.Text)) > 0) {
		where := file
		if l.Line > 0 { // it was not read from the end
			where = fmt.Sprintf("%s line %d (byte %d)", file, l.Line, l.Byte)
		}
		warn(fmt.Errorf("%s: %d bytes are passed over: %w", where, l.Bytes, err))
	}
	return e, err == nil
}

// ReadHistory calls f for each entry of the planning history of a run, oldest
// first, until f returns false: dir is the run's directory, file HistoryFile's
// answer for that run. It needs no ownership, holds one line in memory, and
// reads the compressed form too. Damaged lines are passed over and told to warn,
// which may be nil. A run that never planned has no entries.
func ReadHistory(ctx context.Context, dir, file string, f func(Entry) bool, warn func(error)) error {
	err := contextstore.ReadJournal(ctx, dir, file, func(l contextstore.JournalLine) bool {
		e, ok := decodeLine(file, l, warn)
		return !ok || f(e)
	})
	if err != nil {
		return fmt.Errorf("planning history: %w", err)
	}
	return nil
}
