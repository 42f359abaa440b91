package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

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

// acquire takes the open-file-description lock on path without waiting. It
// returns errLocked while another process holds it. The file is written in
// place, never replaced: a replaced lock file would have two owners.
func acquire(path string, owner Owner) (*lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := setLock(f, unix.F_OFD_SETLK, unix.F_WRLCK); err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, errLocked
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// A former owner may have removed or moved the file between open and lock.
		if same(f, path) {
			l := &lock{f: f, owner: owner}
			if err := l.write(); err != nil {
				l.release()
				return nil, err
			}
			return l, nil
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

func setLock(f *os.File, cmd int, kind int16) error {
	return unix.FcntlFlock(f.Fd(), cmd, &unix.Flock_t{Type: kind, Whence: 0})
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

func (l *lock) release() { _ = l.f.Close() }

// ReadOwner tells whether a context is owned at this moment, and what its
// .lock says. It takes no lock and works on a read-only disk.
func ReadOwner(dir string) (owner Owner, held bool) {
	f, err := os.Open(dir + "/" + lockFile)
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
