package contextstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"toritsugi/internal/disk"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
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
	e.Timestamp = Time{Time: now.UTC()}
	for _, s := range []*string{&e.Actor, &e.Action, &e.UUID, &e.What, &e.Detail} {
		*s = redact(*s)
	}
	line, err := jsonl.Append(nil, e)
	if err != nil {
		return err
	}
	if err := appendAudit(fs, filepath.Join(base, auditFile), line); err != nil {
		return fmt.Errorf("record %s: %w", e.Action, err)
	}
	return nil
}

func appendAudit(fs *disk.FS, path string, line []byte) (err error) {
	there := disk.Exists(path)
	// The lock is on the file itself, by a descriptor of its own; only then may
	// its length be asked for.
	release, err := filelock.OpenWait(context.Background(), path, auditTimeout)
	if err != nil {
		return err
	}
	defer release()
	f, err := fs.OpenAppend(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	good, err := jsonl.GoodEnd(f, f.Size())
	if err == nil {
		err = jsonl.RepairEnd(fs, path, f, good)
	}
	if err != nil {
		return err
	}
	if _, err := f.Append(line); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if !there {
		return fs.SyncDir(filepath.Dir(path))
	}
	return nil
}
