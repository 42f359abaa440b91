package contextstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
)

// dirSessions holds the conversations, a directory each (spec/chat §8).
const dirSessions = "sessions"

// The locks of a session: of a write to it, and of a whole turn.
const (
	sessionLock     = ".lock"
	sessionTurnLock = ".turn"
)

// The roles of the lines of a session's messages.jsonl. The latter two say what became of the
// message with their id.
const (
	SessionUser      = "user"
	SessionAssistant = "assistant"
	SessionWithdrawn = "withdrawn" // its author took it back
	SessionRevised   = "revised"   // it is their content now
)

// sessionLockTimeout is how long a write waits for the writes of other processes.
const sessionLockTimeout = 10 * time.Second

// ErrTurn says that another process is in the middle of a turn of the session.
var ErrTurn = errors.New("another process answers in this session")

// Session is the directory of a conversation. It is no run: it has no row, no
// status and no owner. Any number of processes may write to it, one at a time.
// Nothing is opened until it is used, and nothing stays open.
type Session struct {
	ID  string
	Dir string

	store *Store
	clean func(string) string
}

// SessionsDir is where the conversations of a base directory lie.
func SessionsDir(base string) string { return filepath.Join(base, dirSessions) }

// Session is the conversation of an id, which need not exist yet. Every text that is
// written to it passes clean.
func (s *Store) Session(id string, clean func(string) string) *Session {
	return &Session{ID: id, Dir: filepath.Join(SessionsDir(s.BaseDir), sessionName(id)), store: s, clean: clean}
}

// maxSessionName is the longest name of a session's directory, in bytes.
const maxSessionName = 200

// sessionName is an id as the name of a directory: what is no letter, digit, dot,
// dash or underscore is escaped as in a URL, and a long name ends in a hash.
func sessionName(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if id == "" {
		return "%"
	}
	if b.Len() <= maxSessionName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(id))
	return b.String()[:maxSessionName-33] + "~" + hex.EncodeToString(sum[:16])
}

// EachSession calls f with the directory of each conversation of a base directory,
// in no order, until f returns an error. A base without any has none.
func EachSession(base string, f func(dir string) error) error {
	return eachDir(SessionsDir(base), f)
}

// hold takes a lock of the session, whose directory is made where it is missing.
func (x *Session) hold(ctx context.Context, name string, timeout time.Duration) (disk.Lock, error) {
	for {
		if err := x.store.FS.MkdirAll(x.Dir); err != nil {
			return nil, err
		}
		l, err := filelock.TakeWait(ctx, filepath.Join(x.Dir, name), os.O_CREATE|os.O_RDWR, filelock.Exclusive, timeout)
		if !errors.Is(err, os.ErrNotExist) { // else the directory was removed since
			return l, err
		}
	}
}

// HoldSession keeps others from writing to the conversation in dir until release is called,
// and with change also who looks by this. It waits no longer than wait: filelock.ErrLocked.
func HoldSession(ctx context.Context, dir string, change bool, wait time.Duration) (release func(), err error) {
	flags, kind := os.O_RDONLY, filelock.Shared
	if change {
		flags, kind = os.O_RDWR|os.O_CREATE, filelock.Exclusive
	}
	l, err := filelock.TakeWait(ctx, filepath.Join(dir, sessionLock), flags, kind, wait)
	if errors.Is(err, os.ErrNotExist) && !change {
		return func() {}, nil // nobody ever wrote here
	}
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// Turn takes the right to answer in the session, for which it waits as long as wait;
// ErrTurn where another process has it still.
func (x *Session) Turn(ctx context.Context, wait time.Duration) (release func(), err error) {
	l, err := x.hold(ctx, sessionTurnLock, wait)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("session %s: %w", x.ID, ErrTurn)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", x.ID, err)
	}
	return l.Release, nil
}

// Write calls f while no other process writes to the session. What f reads is as
// it will stay until f returns.
func (x *Session) Write(ctx context.Context, f func(*SessionWriter) error) error {
	l, err := x.hold(ctx, sessionLock, sessionLockTimeout)
	if err != nil {
		return fmt.Errorf("session %s: %w", x.ID, err)
	}
	defer l.Release()
	if err := f(&SessionWriter{x}); err != nil {
		return fmt.Errorf("session %s: %w", x.ID, err)
	}
	return nil
}

// SessionWriter writes to a session that is held.
type SessionWriter struct{ *Session }

// Append writes each of lines, redacted, as a line of JSON at the end of a log of the
// session, whose torn end is cut off first and kept in NAME.cut. All of them are on
// disk when it returns (in the page cache with durability "os"); on an error none is.
func (w *SessionWriter) Append(log string, lines ...any) error { return w.append(log, true, lines) }

// Note is Append for lines whose loss in a power cut loses no word of anybody.
func (w *SessionWriter) Note(log string, lines ...any) error { return w.append(log, false, lines) }

func (w *SessionWriter) append(log string, durable bool, lines []any) (err error) {
	var all []byte
	for _, v := range lines {
		line, err := w.encode(v)
		if err != nil {
			return fmt.Errorf("append to %s: %w", log, err)
		}
		all = append(append(all, line...), '\n')
	}
	fs, path := w.store.FS, filepath.Join(w.Dir, log)
	if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	if st, err := disk.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", path, disk.ErrNotPlain)
	}
	f, err := fs.OpenAppend(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fresh := f.Size() == 0
	good, err := jsonl.GoodEnd(f, f.Size())
	if err == nil {
		err = jsonl.RepairEnd(fs, path, f, good)
	}
	if err != nil {
		return err
	}
	before := f.Size()
	if _, err := f.Append(all); err != nil {
		return err
	}
	if !durable || w.store.NoSync {
		return nil
	}
	if err = f.Sync(); err == nil && fresh {
		err = fs.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, f.Truncate(before)) // not acknowledged: nobody is to find it
	}
	return nil
}

// encode makes a line of v without its newline.
func (x *Session) encode(v any) ([]byte, error) {
	text, err := jsonl.Marshal(v)
	if err != nil {
		return nil, err
	}
	b, err := jsonl.Redact(text, func(s string) string { return jsonl.Valid(x.clean(s)) })
	if err == nil && len(b) >= MaxJournalLine {
		err = fmt.Errorf("%d bytes are more than a line may have, %d", len(b), MaxJournalLine)
	}
	return b, err
}

// Replace writes v, redacted, as a file of the session, in place of what it held.
func (w *SessionWriter) Replace(name string, v any) error {
	b, err := w.encode(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.store.FS.Replace(filepath.Join(w.Dir, name), append(b, '\n'), !w.store.NoSync)
}

// Remove deletes the session with all that belongs to it.
func (w *SessionWriter) Remove() error { return w.store.FS.RemoveAll(w.Dir) }

// ReadSession decodes a file of a session's directory that Replace wrote into v, and
// reports whether there is one.
func ReadSession(dir, name string, v any) (bool, error) {
	raw, err := disk.Read(filepath.Join(dir, name), disk.MaxWhole)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
	}
	return true, nil
}

// SessionBack calls f with each line of a log of a session's directory, latest first,
// until f returns false. It reads no further back than it is asked for, and needs no
// lock: the latest line may be half written. A missing log has no lines.
func SessionBack(dir, log string, f func(line []byte) bool) error {
	file, err := disk.OpenPlain(filepath.Join(dir, log))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from
	st, err := file.Stat()
	if err != nil {
		return err
	}
	return jsonl.Back(file, st.Size(), func(_ int64, line []byte) bool { return f(line) })
}

// SessionLines calls f with each line of a log of a session's directory, oldest first,
// until f returns false. A missing log has no lines.
func SessionLines(dir, log string, f func(line []byte) bool) error {
	file, err := disk.OpenPlain(filepath.Join(dir, log))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from
	return jsonl.Each(file, func(_ int64, line []byte) bool { return f(line) })
}
