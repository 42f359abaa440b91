package contextstore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/disk"
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

// acquire takes the lock on the file at path, opened with more flags, for an owner,
// whose words are written into it in place: a replaced lock file would have two owners.
// filelock.ErrLocked where somebody has it.
func acquire(path string, flags int, owner Owner) (*lock, error) {
	f, err := filelock.Open(path, flags)
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

// Acquire takes the lock of a context for somebody who does not run it, without waiting,
// until release is called; filelock.ErrLocked.
func Acquire(dir string, now time.Time) (release func(), err error) {
	l, err := acquire(filepath.Join(dir, LockFile), os.O_CREATE, newOwner(now))
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

// newOwner is this process as an owner from now on.
func newOwner(now time.Time) Owner {
	t := Time{Time: now.UTC()}
	host, _ := os.Hostname()
	return Owner{ProcessID: os.Getpid(), Hostname: host, AcquiredAt: t, HeartbeatAt: t, BootID: bootID()}
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

func (l *lock) release() { filelock.Close(l.f) }

// ReadOwner tells whether a context is owned at this moment, and what its
// .lock says. It takes no lock and works on a read-only disk.
func ReadOwner(dir string) (owner Owner, held bool) {
	f, err := disk.OpenPlain(filepath.Join(dir, LockFile))
	if err != nil {
		return owner, false
	}
	defer func() { _ = f.Close() }()
	_ = json.NewDecoder(f).Decode(&owner)
	return owner, filelock.Held(f)
}

// bootID identifies this start of the machine, so that a pid of an earlier one
// means nothing.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
