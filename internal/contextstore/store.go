// Package contextstore is the ledger: one directory of JSON and JSONL files per
// run, and tasks.db as an index of them (store-v3; DESIGN §2). It may write only
// through disk. A context has one owner, the process that holds the kernel lock
// on its .lock; everyone may read.
package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// The directories of a base directory: where a context lies says how far it is.
const (
	dirQueued    = "queued"
	dirRunning   = "running"
	dirPaused    = "paused"
	dirCompleted = "completed"
)

var statusDirs = []string{dirQueued, dirRunning, dirPaused, dirCompleted}

// dirOf is where a context of a status lies (spec/README "where a context lies").
func dirOf(s task.Status) string {
	switch s {
	case task.Queued:
		return dirQueued
	case task.Running:
		return dirRunning
	case task.Paused, task.AwaitingApproval:
		return dirPaused
	}
	return dirCompleted
}

// Errors that callers decide on.
var (
	ErrNotFound = errors.New("no such context")
	ErrBusy     = errors.New("context has an owner")
	ErrNotOwner = errors.New("context was taken over by another process")
	ErrEnded    = errors.New("context has ended")
)

// Options configure a Store. BaseDir and Redact must be set.
type Options struct {
	BaseDir string
	NoSync  bool                // durability "os": leave syncing to the kernel
	Redact  func(string) string // what every text passes before it is written
	FS      *disk.FS            // nil for a new one
	Now     func() time.Time    // nil for time.Now
	NewUUID func() string       // nil for random v4
	// Heartbeat is the interval between checkpoints of a quiet context; 0 means 30 s.
	Heartbeat time.Duration
	// OnIndexError hears of errors of tasks.db, which fail nothing; may be nil.
	OnIndexError func(error)
}

// Store is a base directory with contexts in it. Safe for concurrent use.
type Store struct {
	Options
	index    *index
	hostname string
	boot     string
}

// Open prepares the base directory and opens its index. A directory that cannot
// be written is an error; an index that cannot be opened is reported through
// OnIndexError and the store works without it.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = &disk.FS{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUUID == nil {
		o.NewUUID = uuid.NewString
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 30 * time.Second
	}
	if o.OnIndexError == nil {
		o.OnIndexError = func(error) {}
	}
	base, err := filepath.Abs(o.BaseDir)
	if err != nil {
		return nil, err
	}
	o.BaseDir = base
	for _, d := range statusDirs {
		if err := o.FS.MkdirAll(filepath.Join(base, d)); err != nil {
			return nil, i18n.E("contextstore.base_dir", base, err)
		}
	}
	if err := writable(base); err != nil {
		return nil, i18n.E("contextstore.base_dir", base, err)
	}
	s := &Store{Options: o, boot: bootID()}
	s.hostname, _ = os.Hostname()
	_, missing := os.Stat(filepath.Join(base, "tasks.db"))
	if s.index, err = openIndex(ctx, base); err != nil {
		s.index = nil
		s.OnIndexError(err)
	}
	if missing != nil && s.index != nil {
		s.tell(s.indexLive(ctx))
	}
	return s, nil
}

// indexLive gives a new index the runs that have not ended: without them a
// second run of the same key would not be refused.
func (s *Store) indexLive(ctx context.Context) error {
	return walk(s.BaseDir, func(dir string) error {
		if filepath.Base(filepath.Dir(dir)) == dirCompleted {
			return nil
		}
		if v, err := view(dir); err == nil && !v.Status().Final() {
			v.State.TaskStatus = v.Status()
			return s.index.insert(ctx, v.Metadata, v.State)
		}
		return nil
	})
}

// writable proves that files can be made in dir: permission bits do not tell
// of read-only mounts.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// RowUpdates is how often a row was written since the store was opened.
func (s *Store) RowUpdates() int64 {
	if s.index == nil {
		return 0
	}
	return s.index.updates.Load()
}

// Close closes the index. Contexts are closed on their own.
func (s *Store) Close() error { return s.index.close() }

func (s *Store) now() Time { return Time{s.Now().UTC()} }

// tell reports an index error, if it is one.
func (s *Store) tell(err error) {
	if err != nil {
		s.OnIndexError(err)
	}
}

// Enqueue writes a new context into queued/ and returns its uuid. UUID, format,
// creation time, process and host of m are filled in. At most one run of a key
// may be live: a second one is refused with the live one's uuid in the error.
func (s *Store) Enqueue(ctx context.Context, m Metadata) (string, error) {
	if err := s.refuseSecond(ctx, m.TaskKey); err != nil {
		return "", err
	}
	m.UUID, m.Format, m.CreatedAt, m.ProcessID, m.Hostname = s.NewUUID(), Format, s.now(), os.Getpid(), s.hostname
	m.Title = s.Redact(m.Title)
	st := State{Status: Initializing, UpdatedAt: m.CreatedAt, LastActivity: "queued", TaskStatus: task.Queued, Hostname: s.hostname}
	tmp := filepath.Join(s.BaseDir, dirQueued, ".tmp-"+m.UUID)
	dir := filepath.Join(s.BaseDir, dirQueued, m.UUID)
	if err := s.build(tmp, m, st); err != nil {
		return "", errors.Join(fmt.Errorf("enqueue %s: %w", m.TaskKey, err), os.RemoveAll(tmp))
	}
	if err := s.FS.Rename(tmp, dir); err != nil {
		return "", fmt.Errorf("enqueue %s: %w", m.TaskKey, err)
	}
	if err := s.index.insert(ctx, m, st); err != nil {
		if !isUnique(err) {
			s.tell(err)
			return m.UUID, nil
		}
		// Another process enqueued the same key since we looked.
		if err := s.refuseSecond(ctx, m.TaskKey); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
		s.tell(s.index.insert(ctx, m, st)) // which has ended meanwhile
	}
	return m.UUID, nil
}

func (s *Store) build(dir string, m Metadata, st State) error {
	if err := s.FS.MkdirAll(dir); err != nil {
		return err
	}
	for name, v := range map[string]any{metadataFile: m, stateFile: st} {
		b, err := appendLine(nil, v)
		if err != nil {
			return err
		}
		if err := s.FS.Replace(filepath.Join(dir, name), b, !s.NoSync); err != nil {
			return err
		}
	}
	return nil
}

// refuseSecond returns an error if a run of the key is live. A row that the
// directories contradict is mended first.
func (s *Store) refuseSecond(ctx context.Context, k task.Key) error {
	id, err := s.index.live(ctx, k)
	if err != nil || id == "" {
		s.tell(err)
		return nil
	}
	dir, err := s.dir(id)
	if err != nil {
		s.tell(s.index.drop(ctx, id))
		return nil
	}
	st, err := ReadState(dir)
	if err == nil && st.TaskStatus.Final() {
		m, merr := ReadMetadata(dir)
		if merr == nil {
			s.tell(s.index.put(ctx, m, st))
			return nil
		}
	}
	return &LiveError{UUID: id, Status: st.TaskStatus, Key: k}
}

// LiveError says that a run of the same key has not ended.
type LiveError struct {
	UUID   string
	Status task.Status
	Key    task.Key
}

func (e *LiveError) Error() string {
	return fmt.Sprintf("run %s of %s is %s", e.UUID, e.Key, e.Status)
}

// dir finds the directory of a whole uuid.
func (s *Store) dir(uuid string) (string, error) { return findExact(s.BaseDir, uuid) }

func findExact(base, uuid string) (string, error) {
	for _, d := range statusDirs {
		p := filepath.Join(base, d, uuid)
		if st, err := os.Stat(p); err == nil && st.IsDir() {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: %w", uuid, ErrNotFound)
}

// WorkspaceDir is where the workspace of a context lies.
func (s *Store) WorkspaceDir(uuid string) string {
	return filepath.Join(s.BaseDir, "workspaces", uuid)
}

// CacheDir is where the build cache of a repository lies, kept between runs.
func (s *Store) CacheDir(repository string) string {
	return filepath.Join(s.BaseDir, "cache", repository)
}
