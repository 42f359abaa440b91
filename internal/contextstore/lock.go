package contextstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Owner is what .lock says about who holds it, for people: the kernel lock on
// the file is the ownership (DESIGN §2.2, store-v2 §3.6).
type Owner struct {
	ProcessID   int    `json:"process_id"`
	Hostname    string `json:"hostname"`
	AcquiredAt  Time   `json:"acquired_at"`
	HeartbeatAt Time   `json:"heartbeat_at"`
	BootID      string `json:"boot_id"`
}

// lock is a held kernel lock on a file that tells its owner.
type lock struct {
	f     *os.File
	owner Owner
}

var errLocked = errors.New("locked")

// acquire takes the lock on path for an owner, whose words are written into
// the file in place: a replaced lock file would have two owners.
func acquire(path string, owner Owner) (*lock, error) { return acquireAt(path, os.O_CREATE, owner) }

// acquireAt is acquire for a file that is opened with more flags.
func acquireAt(path string, flags int, owner Owner) (*lock, error) {
	f, err := lockFileWith(path, flags)
	if err != nil {
		return nil, err
	}
	l := &lock{f: f, owner: owner}
	if err := l.write(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// lockFileAt takes the open-file-description lock on path without waiting,
// creating the file if it is missing. It returns errLocked while another
// process, or a descendant of a former owner, holds it.
func lockFileAt(path string) (*os.File, error) { return lockFileWith(path, os.O_CREATE) }

func lockFileWith(path string, flags int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flags|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := setLock(f, unix.F_WRLCK); err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, errLocked
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// A former owner may have removed or moved the file between open and lock.
		if same(f, path) {
			return f, nil
		}
		_ = f.Close()
	}
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func setLock(f *os.File, kind int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: 0})
}

// await takes a lock on an open file, waiting for it no longer than timeout;
// errLocked if another process holds it still. The lock is the descriptor's.
func await(ctx context.Context, f *os.File, timeout time.Duration) error {
	end := time.NewTimer(timeout)
	defer end.Stop()
	for {
		err := setLock(f, unix.F_WRLCK)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		again := time.NewTimer(10 * time.Millisecond)
		select {
		case <-again.C:
			continue
		case <-end.C:
			err = errLocked
		case <-ctx.Done():
			err = ctx.Err()
		}
		again.Stop()
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

// write puts the owner's JSON in place, padded so that a shorter one leaves
// nothing of a longer one behind.
func (l *lock) write() error {
	b, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	if _, err := l.f.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	return l.f.Truncate(int64(len(b) + 1))
}

// release gives the lock up. It is undone before the file is closed: a child
// that is being started, for anything, has a copy of the descriptor for a moment.
func (l *lock) release() {
	_ = setLock(l.f, unix.F_UNLCK)
	_ = l.f.Close()
}

// ReadOwner tells whether a context is owned at this moment, and what its
// .lock says. It takes no lock and works on a read-only disk.
func ReadOwner(dir string) (owner Owner, held bool) {
	f, err := openPlain(filepath.Join(dir, lockFile))
	if err != nil {
		return owner, false
	}
	defer func() { _ = f.Close() }()
	_ = json.NewDecoder(f).Decode(&owner)
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe); err != nil {
		return owner, false
	}
	return owner, probe.Type != unix.F_UNLCK
}

// bootID identifies this start of the machine, so that a pid of an earlier one
// means nothing.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
