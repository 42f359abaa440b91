package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

// auditFile is the file in the base directory that tells who read or decided
// what (store-v2 §11.2).
const auditFile = "audit.jsonl"

// AuditEntry is a line of audit.jsonl.
type AuditEntry struct {
	Timestamp Time   `json:"timestamp"`
	Actor     string `json:"actor"`            // the user, as the system or the forge knows them
	Action    string `json:"action"`           // read, claim, pause, resume, stop, check, repair, reindex, approve …
	UUID      string `json:"uuid,omitempty"`   // of the run it is about
	What      string `json:"what,omitempty"`   // messages, summaries, tools, overview …
	Detail    string `json:"detail,omitempty"` // one line for people
}

// auditTimeout is how long an entry waits for the entries of other processes,
// each of which takes about the time of a sync.
const auditTimeout = 5 * time.Second

// Audit appends an entry to base's audit.jsonl and returns once it is on disk.
// Any number of processes may do so at once. The Timestamp is filled in, and
// every text passes redact. A torn end that a power cut left is cut off first
// and kept in audit.jsonl.cut. On a read-only disk it fails.
func Audit(fs *disk.FS, base string, now time.Time, redact func(string) string, e AuditEntry) error {
	e.Timestamp = Time{now.UTC()}
	for _, s := range []*string{&e.Actor, &e.Action, &e.UUID, &e.What, &e.Detail} {
		*s = redact(*s)
	}
	line, err := appendLine(nil, e)
	if err != nil {
		return err
	}
	if err := appendAudit(fs, filepath.Join(base, auditFile), line); err != nil {
		return fmt.Errorf("record %s: %w", e.Action, err)
	}
	return nil
}

func appendAudit(fs *disk.FS, path string, line []byte) (err error) {
	_, missing := os.Lstat(path)
	// The lock is on the file itself, by a descriptor of its own; only then may
	// its length be asked for.
	guard, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, disk.FileMode)
	if err != nil {
		return err
	}
	defer func() { _ = guard.Close() }()
	if err := await(context.Background(), guard, auditTimeout); err != nil {
		return err
	}
	f, err := fs.OpenAppend(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := mendAudit(fs, path, f); err != nil {
		return err
	}
	if _, err := f.Append(line); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if missing != nil {
		return fs.SyncDir(filepath.Dir(path))
	}
	return nil
}

// mendAudit makes the file end with a whole line.
func mendAudit(fs *disk.FS, path string, f *disk.File) error {
	good, newline, err := goodEnd(f, f.Size())
	switch {
	case err != nil:
		return err
	case newline:
		_, err = f.Append([]byte("\n"))
	case good < f.Size():
		if err = setAside(fs, path+".cut", io.NewSectionReader(f, good, f.Size()-good)); err == nil {
			err = f.Truncate(good)
		}
	}
	return err
}

// goodEnd finds, from the end, where the last whole line of the first size
// bytes of r ends, and whether it lacks only its newline. It reads as far back
// as there are lines that are none.
func goodEnd(r io.ReaderAt, size int64) (good int64, newline bool, err error) {
	if size == 0 {
		return 0, false, nil
	}
	last := make([]byte, 1)
	if _, err := r.ReadAt(last, size-1); err != nil {
		return 0, false, err
	}
	ended := last[0] == '\n'
	for end := size; end > 0; {
		start, line, err := lineBefore(r, end)
		if err != nil {
			return 0, false, err
		}
		if jsonObject(line) == nil {
			return end, end == size && !ended, nil
		}
		end = start
	}
	return 0, false, nil
}

// lineBefore returns the line that ends at a byte, without its newline, and
// where it begins.
func lineBefore(r io.ReaderAt, end int64) (start int64, line []byte, err error) {
	var parts [][]byte // last first
	for at := end; at > 0; {
		n := min(block, at)
		part := make([]byte, n)
		if _, err := r.ReadAt(part, at-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, nil, err
		}
		text := part
		if at == end {
			text = bytes.TrimSuffix(part, []byte("\n"))
		}
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			parts = append(parts, text[i+1:])
			start = at - n + int64(i) + 1
			break
		}
		parts = append(parts, text)
		at -= n
	}
	for i := len(parts) - 1; i >= 0; i-- {
		line = append(line, parts[i]...)
	}
	return start, line, nil
}
