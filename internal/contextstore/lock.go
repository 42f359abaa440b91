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
	disk.Lock
	owner Owner
}

// acquire takes the lock on the file at path, opened with more flags, for an owner,
// whose words are written into it in place: a replaced lock file would have two owners.
// filelock.ErrLocked where somebody has it.
func acquire(path string, flags int, owner Owner) (*lock, error) {
	held, err := filelock.Take(path, flags)
	if err != nil {
		return nil, err
	}
	l := &lock{held, owner}
	if err := l.tell(); err != nil {
		l.Release()
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
	return l.Release, nil
}

// newOwner is this process as an owner from now on.
func newOwner(now time.Time) Owner {
	t := Time{Time: now.UTC()}
	host, _ := os.Hostname()
	return Owner{ProcessID: os.Getpid(), Hostname: host, AcquiredAt: t, HeartbeatAt: t, BootID: bootID()}
}

// tell writes who the owner is into the lock file.
func (l *lock) tell() error {
	b, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	return l.Write(append(b, '\n'))
}

// ReadOwner tells whether a context is owned at this moment, and what its
// .lock says. It takes no lock and works on a read-only disk.
func ReadOwner(dir string) (owner Owner, held bool) {
	path := filepath.Join(dir, LockFile)
	b, err := disk.Read(path, disk.MaxWhole)
	if err != nil {
		return owner, false
	}
	_ = json.Unmarshal(b, &owner) // it is for people
	return owner, filelock.Locked(path)
}

// Silent is for how long an owner on this machine has shown no sign. One of another is not silent: its
// clock may be another one, and its lease tells.
func (o Owner) Silent(now time.Time) time.Duration {
	if o.HeartbeatAt.IsZero() || o.BootID != bootID() {
		return 0
	}
	return now.Sub(o.HeartbeatAt.Time)
}

// Passing reports whether a file of a run or conversation is a lock or what a stopped write left: no
// part of what is copied.
func Passing(name string) bool {
	return strings.HasSuffix(name, ".lock") || name == sessionTurnLock || strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// bootID identifies this start of the machine, so that a pid of an earlier one
// means nothing.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
