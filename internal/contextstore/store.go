// Package contextstore is the ledger: a directory of JSON and JSONL files per run,
// and tasks.db as an index of them (store-v3; DESIGN §2). It writes only through disk.
// A context has one owner, the process that holds its lock; everyone may read.
package contextstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
)

// The directories of a base directory: where a context lies says how far it is.
const (
	DirQueued    = "queued"
	DirRunning   = "running"
	DirPaused    = "paused"
	DirCompleted = "completed"
)

// StatusDirs are these directories, those of the contexts that have not ended first.
var StatusDirs = []string{DirQueued, DirRunning, DirPaused, DirCompleted}

var liveDirs = StatusDirs[:3]

// DirOf is where a context of a status lies (spec/README "where a context lies").
func DirOf(s task.Status) string {
	switch s {
	case task.Queued:
		return DirQueued
	case task.Running:
		return DirRunning
	case task.Paused, task.AwaitingApproval:
		return DirPaused
	}
	return DirCompleted
}

// Errors that callers decide on.
var (
	ErrNotFound = errors.New("no such context")
	ErrBusy     = errors.New("context has an owner")
	ErrNotOwner = disk.ErrNotOwner
	ErrEnded    = errors.New("context has ended")

	ErrDelivering = errors.New("another process delivers its effects")
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
	// StateLockTimeout bounds the wait for .state.lock; 0 means 5 s (store-v2 §5.3).
	StateLockTimeout time.Duration
	// MinFree is the free space in bytes below which nothing is claimed; 0 means 16 MiB.
	MinFree uint64
	// StatFS tells about the file system of a path; nil asks the kernel.
	StatFS func(path string) (FileSystem, error)
	// Changed hears of the transition of a run that nobody works on, before it is
	// made: it writes the final summary, where the run ends, and says what the
	// world must see; nil writes one line from the outcome.
	Changed func(context.Context, View, task.Outcome) (summary string, effects []Effect, err error)
	// Reason says why a run that nobody works on was paused or stopped by
	// somebody; nil says it in English.
	Reason func(do Action, by string) string
	// OnRepair hears what the opening of the store finished or mended; may be nil.
	OnRepair func(string)
	// Texts keeps what can be searched of runs that are over; nil for nobody. Close closes it.
	Texts Texts
	// OnIndexError hears of errors of tasks.db, which fail nothing; may be nil.
	OnIndexError func(error)
	// Offer hears of a run that waits to be claimed from now on; may be nil.
	Offer func(uuid string)
}

// Texts hears, without waiting, of a run whose end is finished, and of one that is over whose summary
// or logs changed since, or that was removed.
type Texts interface {
	Changed(uuid string)
	Close() error
}

// textsChanged tells who keeps them that the texts of a run that is over changed.
func (s *Store) textsChanged(uuid string) {
	if s.Texts != nil {
		s.Texts.Changed(uuid)
	}
}

// Store is a base directory with contexts in it. Safe for concurrent use.
type Store struct {
	Options
	base     *database.Base // the lock of the base directory
	houseDB  *HouseDB
	index    *index.Index // nil where it cannot be opened
	hostname string
	boot     string
	links    links
}

// Open prepares the base directory and opens its databases. While another
// process has the directory for itself Open waits until ctx ends. A directory
// that cannot be written is an error, and so is a house.db that cannot be
// opened; a tasks.db that cannot is reported through OnIndexError and the store
// works without it.
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
	if o.OnRepair == nil {
		o.OnRepair = func(string) {}
	}
	if o.Offer == nil {
		o.Offer = func(string) {}
	}
	if o.StateLockTimeout == 0 {
		o.StateLockTimeout = StateLockTimeout
	}
	if o.MinFree == 0 {
		o.MinFree = minFree
	}
	if o.StatFS == nil {
		o.StatFS = statFileSystem
	}
	base, err := filepath.Abs(o.BaseDir)
	if err != nil {
		return nil, err
	}
	o.BaseDir = base
	if err := RefuseAncestor(ctx, base); err != nil {
		return nil, err
	}
	for _, d := range StatusDirs {
		if err := o.FS.MkdirAll(filepath.Join(base, d)); err != nil {
			return nil, i18n.E("contextstore.base_dir", base, err)
		}
	}
	// A start that was killed may have made them and not synced their names.
	if err := o.FS.SyncDir(base); err != nil {
		return nil, i18n.E("contextstore.base_dir", base, err)
	}
	if err := writable(base); err != nil {
		return nil, i18n.E("contextstore.base_dir", base, err)
	}
	s := &Store{Options: o, boot: bootID()}
	tightenBase(base)
	s.hostname, _ = os.Hostname()
	if err := s.dependable(); err != nil {
		return nil, err
	}
	if s.base, err = database.Enter(ctx, base); err != nil {
		return nil, fmt.Errorf("open %s: %w", base, err)
	}
	if err := Whole(base); err != nil {
		s.base.Close()
		return nil, err
	}
	if s.houseDB, err = OpenHouseDB(ctx, base, s.base); err != nil {
		s.base.Close()
		return nil, fmt.Errorf("open %s: %w", base, err)
	}
	if s.index, err = index.Open(ctx, base, s.base, NewRows(base, s.houseDB)); err != nil {
		s.index = nil
		if !s.base.Held() {
			return nil, errors.Join(err, s.Close())
		}
		s.OnIndexError(err)
	}
	if err := s.Recover(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
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
	return s.index.Updates()
}

// closeTime is how long Close may try to tell the index what it lacks.
const closeTime = time.Second

// Close closes the databases and then gives up the house, after which reindex
// and restore may begin. Contexts are closed on their own, before. What the index
// could not be told it is told now, if that goes: nobody else may come soon.
func (s *Store) Close() error {
	if s.index != nil && s.index.Behind() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		s.tell(s.catchUp(ctx))
		cancel()
	}
	err := errors.Join(s.index.Close(), s.houseDB.Close())
	if s.Texts != nil {
		err = errors.Join(err, s.Texts.Close())
	}
	s.base.Close()
	return err
}

func (s *Store) now() Time { return Time{Time: s.Now().UTC()} }

// checkIndex notices that tasks.db was deleted or replaced while it is open,
// and gives the new one the runs that have not ended; and it tells the index what
// it could not be told before. It costs two stats where nothing happened.
func (s *Store) checkIndex(ctx context.Context) {
	reopened, err := s.index.Check(ctx)
	s.tell(err)
	if reopened {
		s.tell(s.Recover(ctx))
	} else {
		s.tell(s.catchUp(ctx))
	}
}

// tell reports an index error, if it is one.
func (s *Store) tell(err error) {
	if err != nil {
		s.OnIndexError(err)
	}
}

// Enqueue writes a new context into queued/ and returns its uuid. UUID, format,
// creation time, process and host of m are filled in. At most one run of a key
// may be live: a second one is refused with the live one's uuid in the error. The
// effects, if any, are what the world must see of it; they are given the uuid and
// committed with the context.
func (s *Store) Enqueue(ctx context.Context, m Metadata, effects ...func(uuid string) Effect) (string, error) {
	if err := s.room(); err != nil {
		return "", err
	}
	s.checkIndex(ctx)
	if s.index == nil { // nothing else keeps two runs of a key apart
		turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTimeout)
		defer cancel()
		release, err := s.base.Turn(turn)
		if err != nil && turn.Err() != nil {
			err = i18n.E("ledger.house_wait", s.BaseDir).Of(err)
		}
		if err != nil {
			return "", err
		}
		defer release()
	}
	if err := s.refuseSecond(ctx, m.TaskKey); err != nil {
		return "", err
	}
	m.UUID, m.Format, m.CreatedAt, m.ProcessID, m.Hostname = s.NewUUID(), Format, s.now(), os.Getpid(), s.hostname
	m.Title = s.Redact(m.Title)
	st := State{Status: Initializing, UpdatedAt: m.CreatedAt, LastActivity: "queued", TaskStatus: task.Queued, Hostname: s.hostname}
	for _, e := range effects {
		st.Outbox = append(st.Outbox, s.redactEffects([]Effect{e(m.UUID)})...)
	}
	tmp := filepath.Join(s.BaseDir, DirQueued, ".tmp-"+m.UUID)
	dir := filepath.Join(s.BaseDir, DirQueued, m.UUID)
	if err := s.build(tmp, m, st); err != nil {
		return "", errors.Join(fmt.Errorf("enqueue %s: %w", m.TaskKey, err), s.FS.RemoveAll(tmp))
	}
	if err := s.FS.Rename(tmp, dir); err != nil {
		// It may have failed after the move; what is not acknowledged must not run.
		return "", errors.Join(fmt.Errorf("enqueue %s: %w", m.TaskKey, err), s.FS.RemoveAll(tmp), s.FS.RemoveAll(dir))
	}
	if err := s.admit(ctx, dir, m, st); err != nil {
		return "", err
	}
	s.Offer(m.UUID)
	return m.UUID, nil
}

// admit gives a context that lies in queued/ its row, or removes it where another run of its key is live.
func (s *Store) admit(ctx context.Context, dir string, m Metadata, st State) error {
	err := s.insertRow(ctx, m, st)
	if database.IsUnique(err) {
		// Another process enqueued the same key since we looked, or found this run without its row.
		var live *LiveError
		err = s.refuseSecond(ctx, m.TaskKey)
		if errors.As(err, &live) && live.UUID == m.UUID {
			return nil
		}
		if err != nil {
			return errors.Join(err, s.FS.RemoveAll(dir))
		}
		err = s.insertRow(ctx, m, st) // which has ended meanwhile
		s.rowDone(m.UUID, err)
	} else if err != nil || s.index == nil {
		s.rowDone(m.UUID, err)
	}
	return nil
}

func (s *Store) build(dir string, m Metadata, st State) error {
	if err := s.FS.MkdirAll(dir); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		v    any
	}{{MetadataFile, m}, {StateFile, st}} {
		b, err := jsonl.Append(nil, f.v)
		if err != nil {
			return err
		}
		if err := s.FS.Replace(filepath.Join(dir, f.name), b, !s.NoSync); err != nil {
			return err
		}
	}
	return nil
}

// refuseSecond returns an error if a run of the key is live. A row that the
// directories contradict is mended first.
func (s *Store) refuseSecond(ctx context.Context, k task.Key) error {
	if !s.indexed() {
		return s.refuseBeside(k)
	}
	id, err := s.index.Live(ctx, k)
	if err != nil {
		s.tell(err)
		return s.refuseBeside(k)
	}
	if id == "" {
		return nil
	}
	dir, err := s.dir(id)
	if err != nil {
		s.tell(s.index.Drop(ctx, id))
		return nil
	}
	st, err := ReadState(dir)
	if err == nil && st.TaskStatus.Final() {
		m, merr := ReadMetadata(dir)
		if merr == nil {
			_ = s.putRow(ctx, m, st)
			return nil
		}
	}
	return &LiveError{UUID: id, Status: st.TaskStatus, Key: k}
}

// turnTimeout is how long an Enqueue without an index waits for others.
const turnTimeout = 10 * time.Second

// refuseBeside is the one-live-run rule by the directories alone, where there is
// no index that could be asked.
func (s *Store) refuseBeside(k task.Key) error {
	return Walk(s.BaseDir, liveDirs, func(dir string) error {
		v, err := ReadView(dir)
		if err != nil || v.Metadata.TaskKey != k || v.Status().Final() {
			return nil //nolint:nilerr // what cannot be read refuses nothing
		}
		return &LiveError{UUID: v.Metadata.UUID, Status: v.Status(), Key: k}
	})
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
func (s *Store) dir(uuid string) (string, error) { return FindDir(s.BaseDir, uuid) }

// Metadata reads the metadata of a whole uuid's context, whoever owns it.
func (s *Store) Metadata(uuid string) (Metadata, error) {
	return InDir(s.BaseDir, uuid, ReadMetadata)
}

// FindDir finds the directory of a context by its whole uuid below a base directory: ErrNotFound, or
// why one could not be looked for.
func FindDir(base, uuid string) (string, error) {
	if uuid == "" || filepath.Base(uuid) != uuid {
		return "", fmt.Errorf("%q: %w", uuid, ErrNotFound)
	}
	paths := make([]string, len(StatusDirs))
	for i, d := range StatusDirs {
		paths[i] = filepath.Join(base, d, uuid)
	}
	dir, err := disk.FindDir(paths)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", uuid, err)
	}
	return dir, nil
}

// WorkspaceDir is where the workspace of a context lies.
func (s *Store) WorkspaceDir(uuid string) string {
	return filepath.Join(s.BaseDir, "workspaces", uuid)
}

// SetupsDir holds for each repository what its setups left.
func (s *Store) SetupsDir() string { return filepath.Join(s.BaseDir, "setup") }

// SetupDir is where lies what the setups of a repository left, kept between
// runs. No command of a model may write to it. Each repository has its own: the
// name is for people to read, and a hash keeps a-b/c from a/b-c.
func (s *Store) SetupDir(owner, repository string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + repository))
	return filepath.Join(s.SetupsDir(), plainName(owner)+"-"+plainName(repository)+"-"+hex.EncodeToString(sum[:8]))
}

// plainName is the beginning of s without what a shell or a file system may take
// for something else.
func plainName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 40)]
}

// OldCacheDir is where earlier versions kept build caches that a run's commands
// and its checks shared. Nothing reads it.
func (s *Store) OldCacheDir() string { return filepath.Join(s.BaseDir, "cache") }

// MirrorsDir is where the mirrors of remote repositories lie.
func (s *Store) MirrorsDir() string { return filepath.Join(s.BaseDir, "mirrors") }

// Settled returns when a run ended, or false while it may go on, or owes the
// world something, or is kept (Keep), or cannot be read.
func (s *Store) Settled(ctx context.Context, uuid string) (time.Time, bool) {
	dir, err := s.dir(uuid)
	if err != nil {
		return time.Time{}, errors.Is(err, ErrNotFound)
	}
	state, err := ReadState(dir)
	if err != nil || !state.TaskStatus.Final() || state.Phase != "" {
		return time.Time{}, false
	}
	if is, err := kept(dir); err != nil || is {
		return time.Time{}, false
	}
	left, err := s.Undelivered(ctx, uuid)
	if err != nil || len(left) > 0 {
		return time.Time{}, false
	}
	if state.CompletedAt.IsZero() {
		return state.UpdatedAt.Time, true
	}
	return state.CompletedAt.Time, true
}
