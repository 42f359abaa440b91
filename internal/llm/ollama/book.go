package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/llm/wire"
)

// state is what the processes of a machine know together of one server.
type state struct {
	Format      int         `json:"format"`
	Endpoint    string      `json:"endpoint"`
	Restarts    []time.Time `json:"restarts"` // begun within the window, the oldest first
	Warmups     []time.Time `json:"warm_ups"` // likewise
	LastRestart time.Time   `json:"last_restart,omitzero"`
	HealedAt    time.Time   `json:"healed_at,omitzero"` // when a repair last ended well
	LastError   string      `json:"last_error,omitempty"`
}

const (
	stateFormat = 1
	maxState    = 64 << 10               // bytes; it holds a few times and one error
	lockPoll    = 100 * time.Millisecond // between two tries for a lock of another process
)

// book keeps a state in a file, and lets one repairer at it at a time. Without
// a directory it keeps it in memory, for this process alone.
type book struct {
	fs     *disk.FS
	dir    string
	name   string // of its files, without an ending
	window time.Duration

	mu  sync.Mutex
	mem state
}

func (b *book) path(ending string) string { return filepath.Join(b.dir, b.name+ending) }

// lock waits until no one else on the machine repairs the server, or ctx ends.
// The lock is of the open file description, so a second one in this process
// waits too, and a killed process leaves none behind.
func (b *book) lock(ctx context.Context) (unlock func(), err error) {
	if b.dir == "" {
		return func() {}, nil // one flight at a time is all there is
	}
	if err := b.fs.MkdirAll(b.dir); err != nil {
		return nil, err
	}
	path := b.path(".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, disk.FileMode)
	if err != nil {
		return nil, err
	}
	for {
		err := setLock(f, unix.F_WRLCK)
		if err == nil {
			return func() {
				// Undone before closing: a child that is being started has a
				// copy of the descriptor for a moment.
				_ = setLock(f, unix.F_UNLCK)
				_ = f.Close()
			}, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err := wire.Sleep(ctx, lockPoll); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
}

func setLock(f *os.File, kind int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: 0})
}

// load returns the state with the entries that still count at now. What cannot
// be understood counts as nothing; what cannot be read is an error, and so is a
// newer format.
func (b *book) load(now time.Time) (state, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.mem
	if b.dir != "" {
		raw, err := disk.Read(b.path(".json"), maxState)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.As(err, new(*disk.TooLargeError)): // the latter is none of ours
			st = state{}
		case err != nil:
			return state{}, err
		default:
			st = state{}
			if json.Unmarshal(raw, &st) != nil {
				st = state{}
			}
			if st.Format > stateFormat {
				return state{}, fmt.Errorf("%s has format %d, newer than %d", b.path(".json"), st.Format, stateFormat)
			}
		}
	}
	st.Restarts, st.Warmups = b.recent(st.Restarts, now), b.recent(st.Warmups, now)
	return st, nil
}

// recent are the times that count: those within the window, and none that lie
// so far ahead that a clock was put back since.
func (b *book) recent(all []time.Time, now time.Time) []time.Time {
	var kept []time.Time
	for _, t := range all {
		if d := now.Sub(t); d < b.window && d > -b.window {
			kept = append(kept, t)
		}
	}
	return kept
}

// save replaces the state; on a power cut the old one or the new one is there.
func (b *book) save(st state) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	st.Format = stateFormat
	if b.dir == "" {
		b.mem = st
		return nil
	}
	raw, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return b.fs.Replace(b.path(".json"), append(raw, '\n'), true)
}
