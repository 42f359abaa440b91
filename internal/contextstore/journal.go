package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"

	"toritsugi/internal/contextstore/jsonl"
)

// MaxJournalLine is the longest line of a journal, in bytes: what is longer is
// not written, and passed over where another wrote it.
const MaxJournalLine = 64 << 20

// Journal is a file of JSON lines that another room keeps of a run: it is
// appended to by the owner of the run's context and lies in that context's
// directory, with which it moves, or where somebody wants it to lie. Its methods
// may be called from several goroutines.
type Journal struct {
	c     *Context
	f     *disk.File
	name  string
	noted bool // lines that are not synced
}

// Line is a JSON object as a journal holds it: redacted, UTF-8, in one line with
// its newline.
type Line struct{ b []byte }

// Text is the line without its newline; it must not be changed.
func (l Line) Text() []byte { return bytes.TrimSuffix(l.b, []byte("\n")) }

// OpenJournal opens a file of the run for appending, and makes it, with its
// directory, where it is missing. A relative name is one below the context's
// directory. An end that is no whole line is cut off and kept in *.cut; what was
// mended is returned, for people. The caller closes the journal before it gives
// the context up; what is appended later is refused.
func (c *Context) OpenJournal(name string) (*Journal, []string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, nil, err
	}
	j := &Journal{c: c, name: name}
	fixed, err := j.open()
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", j.path(), err)
	}
	return j, fixed, nil
}

// path is where the file lies now. The caller holds c.mu.
func (j *Journal) path() string {
	if filepath.IsAbs(j.name) {
		return j.name
	}
	return filepath.Join(j.c.dir, j.name)
}

func (j *Journal) open() (fixed []string, err error) {
	fs, path := j.c.store.FS, j.path()
	if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	// A pipe would be waited for, and what lies behind a link may be anybody's.
	if st, err := disk.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil, disk.ErrNotPlain
	}
	f, err := fs.OpenAppend(path)
	if err != nil {
		return nil, err
	}
	before := f.Size()
	good, err := jsonl.GoodEnd(f, before)
	if err == nil {
		err = jsonl.RepairEnd(fs, path, f, good)
	}
	if err == nil && !j.c.store.NoSync {
		// The file may be new, or what a killed owner left in the page cache: what
		// follows rests on both.
		if err = fs.SyncDir(filepath.Dir(path)); err == nil && before > 0 {
			err = f.Sync()
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	switch cut := before - f.Size(); {
	case cut > 0:
		fixed = append(fixed, fmt.Sprintf("%s: %d bytes that are no whole line were cut off its end and kept in %s.cut", j.name, cut, filepath.Base(j.name)))
	case cut < 0:
		fixed = append(fixed, j.name+": the newline of its last line was missing")
	}
	j.f = f
	return fixed, nil
}

// Encode makes a line of v, which must become a JSON object. Every text in it
// is redacted, the names of its fields too.
func (j *Journal) Encode(v any) (Line, error) {
	text, err := jsonl.Marshal(v)
	if err != nil {
		return Line{}, err
	}
	if err := jsonl.Check(text); err != nil {
		return Line{}, fmt.Errorf("encode %T: %w", v, err)
	}
	b, err := jsonl.Redact(text, j.c.clean)
	if err != nil {
		return Line{}, fmt.Errorf("encode %T: %w", v, err)
	}
	if len(b) >= MaxJournalLine {
		return Line{}, fmt.Errorf("encode %T: %d bytes are more than a line may have, %d", v, len(b), MaxJournalLine)
	}
	return Line{append(b, '\n')}, nil
}

// Append writes lines after the last one. All of them are on disk when it
// returns (in the page cache with durability "os"); on an error none of them is.
func (j *Journal) Append(lines ...Line) error { return j.append(true, lines) }

// Note is Append for lines that can be made again from what is on disk: they are
// in the page cache when it returns, and on disk at Close.
func (j *Journal) Note(lines ...Line) error { return j.append(false, lines) }

func (j *Journal) append(durable bool, lines []Line) error {
	c := j.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	var all []byte
	for _, l := range lines {
		all = append(all, l.b...)
	}
	if len(all) == 0 {
		return nil
	}
	path := j.path()
	j.f.Moved(filepath.Dir(path))
	// What goes on into a file that somebody removed or cut would be seen by nobody.
	if st, err := disk.Lstat(path); err != nil || st.Size() != j.f.Size() {
		return i18n.E("contextstore.log_changed", path)
	}
	j.noted = !durable && !c.store.NoSync
	return c.write(&logFile{File: j.f}, all, durable)
}

// Back calls f for each line so far, latest first, until f returns false. It
// reads no further back than it is asked for.
func (j *Journal) Back(f func(line []byte) bool) error {
	return jsonl.Back(j.f, j.size(), func(_ int64, line []byte) bool { return f(line) })
}

func (j *Journal) size() int64 {
	j.c.mu.Lock()
	defer j.c.mu.Unlock()
	return j.f.Size()
}

// Close releases the file, with what was noted on disk.
func (j *Journal) Close() error {
	j.c.mu.Lock()
	defer j.c.mu.Unlock()
	var err error
	if j.noted && j.c.usable() == nil {
		err = j.f.Sync()
	}
	return errors.Join(err, j.f.Close())
}

// JournalLine is a line as it is read, whatever it holds.
type JournalLine struct {
	Line  int64  // from 1
	Byte  int64  // offset of its beginning
	Bytes int64  // its length, with the newline
	Text  []byte // without the newline, valid during the call; nil where it is longer than MaxJournalLine
	Ended bool   // it has its newline; the last line of a live run may be half written
}

func eachJournalLine(r io.Reader, f func(JournalLine) bool) error {
	var n int64
	return jsonl.Scan(r, MaxJournalLine, func(l jsonl.Line) bool {
		n++
		return f(JournalLine{Line: n, Byte: l.At, Bytes: l.Bytes, Text: l.Text, Ended: l.Newline})
	})
}

// ReadJournal calls f for each line of a journal of a run whose directory is
// dir, or of its compressed form, oldest first, until f returns false. A missing
// journal has no lines; a missing context is an error: it may have been moved.
// It holds one line in memory and works on a read-only disk.
func ReadJournal(ctx context.Context, dir, name string, f func(JournalLine) bool) error {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	r, _, err := OpenLog(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if r == nil {
		_, err = disk.Stat(dir)
		return err
	}
	defer func() { _ = r.Close() }()
	err = eachJournalLine(r, func(l JournalLine) bool { return ctx.Err() == nil && f(l) })
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
