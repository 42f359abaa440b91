package planning

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// HistoryOptions configure a History.
type HistoryOptions struct {
	File string           // HistoryFile's answer; an absolute one must be of this run alone
	Now  func() time.Time // must be set
	// Lazy leaves the syncing to Close: what is recorded follows from messages
	// that are on disk, and is recorded once more where it is missing.
	Lazy bool
	// Heard is told each new entry once it is written, in order; may be nil.
	Heard func(Entry)
	// Warn hears of lines that are passed over because they are damaged; may be nil.
	Warn func(Damage)
}

// Damage is a line of a history that cannot be read.
type Damage struct {
	File  string
	Line  int64 // from 1; 0 where it is not known, since the file was read from its end
	Byte  int64 // offset of the line, where Line is known
	Bytes int64 // length
	Err   error
}

// String says where it is and what is wrong with it.
func (d Damage) String() string {
	where := ""
	if d.Line > 0 {
		where = fmt.Sprintf(" line %d (byte %d)", d.Line, d.Byte)
	}
	return fmt.Sprintf("%s%s: %d bytes are passed over: %v", d.File, where, d.Bytes, d.Err)
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
	seen []uint64 // keys of the latest entries, at most openLines
	last int64    // the highest Seq of them
}

// OpenHistory opens the planning history of a run, and makes it where it is
// missing. It mends the end of the file and returns, for people, what it mended.
// Its work does not grow with the length of the history. The caller closes it
// before it gives the context up; the file moves with the context.
func OpenHistory(c *contextstore.Context, o HistoryOptions) (*History, []string, error) {
	j, fixed, err := c.OpenJournal(o.File)
	if err != nil {
		return nil, nil, fmt.Errorf("planning history of %s: %w", c.UUID(), err)
	}
	h := &History{j: j, o: o, meta: c.Metadata()}
	lines, size := 0, 0
	err = j.Back(func(line []byte) bool {
		e, _ := h.decode(line, 0, 0)
		h.note(e)
		lines++
		size += len(line)
		return lines < openLines && size < openBytes
	})
	if err != nil {
		return nil, fixed, errors.Join(fmt.Errorf("planning history of %s: %w", c.UUID(), err), j.Close())
	}
	slices.Reverse(h.seen) // oldest first
	return h, fixed, nil
}

// note remembers an entry. The caller holds mu, or has the only hold on h.
func (h *History) note(e Entry) {
	h.last = max(h.last, e.Seq)
	if k := e.key(); k != 0 {
		h.seen = append(h.seen, k)
	}
	if n := len(h.seen) - openLines; n > 0 {
		h.seen = slices.Delete(h.seen, 0, n)
	}
}

// Append writes entries after the last one, with their time, issue and run
// filled in and their texts redacted. All that it writes is on disk when it
// returns, with one sync; on an error none of it is. An entry whose Seq and
// subject were recorded already is not written again: a resumed run may take its
// last answers once more. written is how many were new.
func (h *History) Append(entries ...Entry) (written int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fresh []Entry
	var lines []contextstore.Line
	for _, e := range entries {
		e.Timestamp = contextstore.Time{Time: h.o.Now()}
		e.IssueID, e.TaskUUID = h.meta.TaskKey.ID, h.meta.UUID
		line, err := h.j.Encode(e)
		if err != nil {
			return 0, fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
		}
		// Told apart as it will be read, and readable before it counts as written.
		stored, err := DecodeEntry(line.Text())
		if err != nil {
			return 0, fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
		}
		same := func(f Entry) bool { return f.key() == stored.key() }
		if k := stored.key(); k != 0 && (slices.Contains(h.seen, k) || slices.ContainsFunc(fresh, same)) {
			continue
		}
		fresh, lines = append(fresh, stored), append(lines, line)
	}
	write := h.j.Append
	if h.o.Lazy {
		write = h.j.Note
	}
	if err := write(lines...); err != nil {
		return 0, fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
	}
	for _, e := range fresh {
		h.note(e)
		if h.o.Heard != nil {
			h.o.Heard(e)
		}
	}
	return len(fresh), nil
}

// LastSeq is the highest number of a message whose answer is recorded, as far
// as OpenHistory looked back, 0 for none: what came later is still to be taken.
func (h *History) LastSeq() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Latest is the last entry that is wanted, nil where there is none. It reads
// back from the end.
func (h *History) Latest(want func(*Entry) bool) (found *Entry, err error) {
	err = h.j.Back(func(line []byte) bool {
		if e, ok := h.decode(line, 0, 0); ok && want(&e) {
			found = &e
		}
		return found == nil
	})
	if err != nil {
		return nil, fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
	}
	return found, nil
}

// Each calls f for every entry, oldest first, until f returns false. Damaged
// lines are passed over and told to HistoryOptions.Warn.
func (h *History) Each(f func(Entry) bool) error {
	err := h.j.Each(func(l contextstore.JournalLine) bool {
		e, ok := decodeLine(h.o.File, l, h.o.Warn)
		return !ok || f(e)
	})
	if err != nil {
		return fmt.Errorf("planning history of %s: %w", h.meta.UUID, err)
	}
	return nil
}

// Close releases the file.
func (h *History) Close() error { return h.j.Close() }

func (h *History) decode(line []byte, n, at int64) (Entry, bool) {
	return decodeLine(h.o.File, contextstore.JournalLine{Line: n, Byte: at, Bytes: int64(len(line)) + 1, Text: line, Ended: true}, h.o.Warn)
}

var errTooLong = fmt.Errorf("longer than a line may be, %d bytes", contextstore.MaxJournalLine)

// decodeLine reads a line; one that is none is told. Blank lines and a last one
// that is being written are not worth a word.
func decodeLine(file string, l contextstore.JournalLine, warn func(Damage)) (Entry, bool) {
	var e Entry
	err := errTooLong
	if l.Text != nil {
		if len(strings.TrimSpace(string(l.Text[:min(len(l.Text), 64)]))) == 0 && len(l.Text) < 64 {
			return e, false
		}
		e, err = DecodeEntry(l.Text)
	}
	if err != nil && l.Ended && warn != nil {
		warn(Damage{File: file, Line: l.Line, Byte: l.Byte, Bytes: l.Bytes, Err: err})
	}
	return e, err == nil
}

// ReadHistory calls f for each entry of the planning history of a run, oldest
// first, until f returns false: dir is the run's directory, file HistoryFile's
// answer for that run. It needs no ownership, holds one line in memory, and
// reads the compressed form too. Damaged lines are passed over and told to warn,
// which may be nil. A run that never planned has no entries.
func ReadHistory(ctx context.Context, dir, file string, f func(Entry) bool, warn func(Damage)) error {
	err := contextstore.ReadJournal(ctx, dir, file, func(l contextstore.JournalLine) bool {
		e, ok := decodeLine(file, l, warn)
		return !ok || f(e)
	})
	if err != nil {
		return fmt.Errorf("planning history: %w", err)
	}
	return nil
}
