package contextstore

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Retention says for how long ended runs keep what, counted from their ends (store-v2 §7.2, §8.1;
// spec/README "retention vs inheritance"). 0 is for ever.
type Retention struct {
	Gzip   time.Duration // then messages and tools are compressed
	Slim   time.Duration // then they are removed, with what they refer to
	Delete time.Duration // then all is removed

	Rules []RetentionRule // take the place of these for the runs that they name; the first that fits

	// MaxBytes is what the directories of ended runs may take together, 0 for no limit: the
	// oldest go until it is enough. Near hears of what they take at the end, where that is
	// nine tenths of MaxBytes or more; may be nil.
	MaxBytes int64
	Near     func(bytes int64)

	// MoveOut is called with the directory of each run whose logs are compressed; may be nil.
	MoveOut func(ctx context.Context, dir string) error
}

// RetentionRule is a Retention of some runs.
type RetentionRule struct {
	Status task.Status // "" for each
	Repo   string      // owner/name, or the name alone; "" for each
	Keep   bool        // nothing is done with them

	Gzip, Slim, Delete time.Duration
}

// RetentionStep is what is done with a run.
type RetentionStep string

// The steps.
const (
	StepGzip   RetentionStep = "gzip"
	StepSlim   RetentionStep = "slim"
	StepDelete RetentionStep = "delete"
	StepRoom   RetentionStep = "room" // removed for MaxBytes
)

// Retained is a step that was done, or would be.
type Retained struct {
	UUID  string        `json:"uuid"`
	Step  RetentionStep `json:"step"`
	Freed int64         `json:"freed_bytes"` // where it was not done: what the step takes away or, for gzip, has to compress
}

// slimmedFile is in the directory of a run whose messages and tools were removed: when.
const slimmedFile = "slimmed.json"

// slimmed are the parts of a run that are removed before the others; a name is that of a file, its
// compressed form, or a directory. The rest tells what was asked, decided and made of it.
var slimmed = []string{Window, Messages, Tools, "images", "spill", SnapshotFile}

// SnapshotFile says what a bucket keeps of a run's workspace.
const SnapshotFile = "snapshot.json"

// Retain does with each ended run what its age asks for, removes the oldest where all take too
// much, and tells each of it. A run that is not ended, owes the world something or is kept (Keep)
// is left alone. dry only tells. Whenever it is cut short, the next call goes on: a run has its
// messages plain, compressed or not at all, and never half. ErrBusy: another process is at it. One
// run that fails keeps the others from nothing; the error is that of the first.
func (s *Store) Retain(ctx context.Context, r Retention, dry bool, each func(Retained)) error {
	alone, err := s.Alone("retention")
	if err != nil {
		return err
	}
	defer alone.Release()
	if err := s.removeHalves(ctx); err != nil {
		return err
	}
	var failed error
	did := func(dir string, step RetentionStep) (freed int64) {
		freed, err := s.retain(ctx, dir, step, dry)
		if err == nil && step == StepGzip && r.MoveOut != nil && !dry {
			err = r.MoveOut(ctx, dir)
		}
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, errKept): // somebody removed it, or wants it
		case err != nil:
			failed = cmp.Or(failed, fmt.Errorf("%s of run %s: %w", step, filepath.Base(dir), err))
		case freed > 0 || step == StepDelete || step == StepRoom:
			each(Retained{filepath.Base(dir), step, freed})
			return freed
		}
		return 0
	}
	total := int64(0)
	err = s.eachEnded(ctx, r, func(dir string, _ time.Time, step RetentionStep) {
		freed := int64(0)
		if step != "" {
			freed = did(dir, step)
		}
		if r.MaxBytes > 0 {
			n, _ := sizeOf(dir) // what is gone takes nothing
			if dry && step != StepGzip {
				n -= freed
			}
			total += n
		}
	})
	if err == nil && r.MaxBytes > 0 {
		if total > r.MaxBytes {
			err = s.shrink(ctx, r, &total, did)
		}
		if r.Near != nil && total >= r.MaxBytes/10*9 {
			r.Near(total)
		}
	}
	if !dry {
		_ = s.keepReserve() // the next time, where there is no room for it
	}
	return cmp.Or(err, failed)
}

// reserveFile, in the base directory, is the room that makes cleanup possible on a disk so full
// that no database opens.
const (
	reserveFile  = ".reserve"
	reserveBytes = 1 << 20
)

// keepReserve takes that room where it is not taken.
func (s *Store) keepReserve() error {
	path := filepath.Join(s.BaseDir, reserveFile)
	if disk.Exists(path) {
		return nil
	}
	b := make([]byte, reserveBytes)
	_, _ = rand.Read(b) // which no file system makes smaller
	return s.FS.Replace(path, b, true)
}

// SpendReserve gives the room up that Retain keeps in a base directory, and reports whether there was any.
func SpendReserve(base string) bool { return os.Remove(filepath.Join(base, reserveFile)) == nil }

// eachEnded calls f with each directory of completed/, when its run ended and what that is due
// for; of a run that must be left alone the time is zero.
func (s *Store) eachEnded(ctx context.Context, r Retention, f func(dir string, ended time.Time, step RetentionStep)) error {
	return Walk(s.BaseDir, []string{DirCompleted}, func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ended, ok := s.Settled(ctx, filepath.Base(dir))
		keep, step := false, RetentionStep("")
		if ok {
			keep, step = r.due(dir, s.Now().Sub(ended))
		}
		if !ok || keep {
			ended = time.Time{}
		}
		f(dir, ended, step)
		return nil
	})
}

// shrinkBatch is how many of the oldest runs are looked for at once.
const shrinkBatch = 1024

// shrink removes the oldest runs until the rest takes no more than it may.
func (s *Store) shrink(ctx context.Context, r Retention, total *int64, did func(string, RetentionStep) int64) error {
	type run struct {
		ended time.Time
		dir   string
	}
	older := func(a, b run) int { return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.dir, b.dir)) }
	for last := (run{}); *total > r.MaxBytes; {
		var oldest []run
		err := s.eachEnded(ctx, r, func(dir string, ended time.Time, step RetentionStep) {
			if x := (run{ended, dir}); !ended.IsZero() && step != StepDelete && older(x, last) > 0 { // that step was told of
				oldest = append(oldest, x)
			}
			if len(oldest) == 2*shrinkBatch {
				slices.SortFunc(oldest, older)
				oldest = oldest[:shrinkBatch]
			}
		})
		if err != nil || len(oldest) == 0 {
			return err
		}
		slices.SortFunc(oldest, older)
		for _, last = range oldest[:min(len(oldest), shrinkBatch)] {
			if *total <= r.MaxBytes {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			*total -= did(last.dir, StepRoom)
		}
	}
	return nil
}

// due is what a run of an age is due for, and whether a rule keeps it from everything.
func (r Retention) due(dir string, age time.Duration) (keep bool, step RetentionStep) {
	var v View
	if len(r.Rules) > 0 {
		var err error
		if v, err = ReadView(dir); err != nil { // whose rule it falls under nobody can tell
			return true, ""
		}
	}
	k := v.Metadata.TaskKey
	for _, rule := range r.Rules {
		if (rule.Status == "" || rule.Status == v.Status()) && (rule.Repo == "" || rule.Repo == k.Repo || rule.Repo == k.Owner+"/"+k.Repo) {
			if rule.Keep {
				return true, ""
			}
			r.Gzip, r.Slim, r.Delete = rule.Gzip, rule.Slim, rule.Delete
			break
		}
	}
	past := func(d time.Duration) bool { return d > 0 && age >= d }
	switch {
	case past(r.Delete):
		return false, StepDelete
	case past(r.Slim):
		return false, StepSlim
	case past(r.Gzip):
		return false, StepGzip
	}
	return false, ""
}

// keepFile is in the directory of a run that no retention touches: {"kept_at", "by"}.
const keepFile = "keep.json"

// errKept is why nothing was done with a run.
var errKept = errors.New("it is kept")

// keepWait is how long Keep waits for what is being done with one run.
const keepWait = 30 * time.Second

// IsKept reports whether a run is kept from retention (Keep).
func IsKept(dir string) bool {
	is, _ := kept(dir)
	return is
}

// kept is IsKept, or why nobody can tell.
func kept(dir string) (bool, error) {
	_, err := disk.Lstat(filepath.Join(dir, keepFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// keeping keeps retention and Keep apart, while one of them is at a run.
func (s *Store) keeping(ctx context.Context) (release func(), err error) {
	return filelock.OpenWait(ctx, filepath.Join(s.BaseDir, ".keep.lock"), keepWait)
}

// Keep has no retention touch a run, whatever its status; with release it is as others again. The
// mark lies in the run's directory and is on the disk when Keep returns. did is false where it was
// so already. The error wraps ErrNotFound, or filelock.ErrLocked where retention takes its time.
func (s *Store) Keep(ctx context.Context, uuid, by string, release bool) (did bool, err error) {
	done, err := s.keeping(ctx)
	if errors.Is(err, filelock.ErrLocked) {
		err = i18n.E("contextstore.keep_wait", uuid).Of(err)
	}
	if err != nil {
		return false, err
	}
	defer done()
	return InDir(s.BaseDir, uuid, func(dir string) (bool, error) {
		if is, err := kept(dir); err != nil || is != release {
			return false, err
		}
		path := filepath.Join(dir, keepFile)
		if release {
			return true, errors.Join(s.FS.Remove(path), s.FS.SyncDir(dir))
		}
		b, err := jsonl.Append(nil, struct {
			At Time   `json:"kept_at"`
			By string `json:"by"`
		}{s.now(), s.Redact(by)})
		if err != nil {
			return false, err
		}
		return true, s.FS.Replace(path, b, true)
	})
}

// retain does a step, or tells what it would free. errKept: somebody keeps the run.
func (s *Store) retain(ctx context.Context, dir string, step RetentionStep, dry bool) (freed int64, err error) {
	release, err := s.keeping(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if is, err := kept(dir); err != nil || is {
		return 0, cmp.Or(err, errKept)
	}
	switch step {
	case StepDelete, StepRoom:
		if freed, err = sizeOf(dir); err == nil {
			err = knownFormat(dir)
		}
		if err != nil || dry {
			return freed, err
		}
		if disk.At(dir) != nil { // it goes as a whole
			s.tell(s.index.Drop(context.WithoutCancel(ctx), filepath.Base(dir)))
			s.textsChanged(filepath.Base(dir))
			return freed, s.FS.RemoveAll(dir)
		}
		// Its name goes first: what a cut leaves of it is no run.
		gone := filepath.Join(s.BaseDir, RemovedPrefix+filepath.Base(dir))
		if err := s.FS.Rename(dir, gone); err != nil {
			return 0, err
		}
		return freed, s.removeHalf(ctx, gone)
	case StepSlim:
		var there []string
		for _, name := range slimmed {
			for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, name+".gz")} {
				n, err := sizeOf(path)
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				if err != nil {
					return freed, err
				}
				there, freed = append(there, path), freed+n
			}
		}
		if len(there) == 0 {
			return 0, nil
		}
		if err := knownFormat(dir); err != nil || dry {
			return freed, err
		}
		if err := s.FS.Replace(filepath.Join(dir, slimmedFile), fmt.Appendf(nil, "{\"slimmed_at\":%q}\n", s.now().String()), !s.NoSync); err != nil {
			return 0, err
		}
		for _, path := range there {
			if err := s.FS.RemoveAll(path); err != nil {
				return freed, err
			}
		}
		s.textsChanged(filepath.Base(dir))
		return freed, s.FS.SyncDir(dir)
	}
	for _, name := range []string{Messages, Tools} {
		n, err := s.compress(dir, name, dry)
		if freed += n; err != nil {
			return freed, err
		}
	}
	return freed, nil
}

// knownFormat is why a run that a newer program wrote is left alone. One whose metadata cannot be
// read grows old as others do.
func knownFormat(dir string) error {
	if _, err := ReadMetadata(dir); errors.Is(err, ErrNewerFormat) {
		return err
	}
	return nil
}

// RemovedPrefix begins the name, in the base directory, of what is being removed: a run's, or what a restore left.
const RemovedPrefix = ".removed-"

// compress puts a compressed form in the place of a log, once that is on the disk and was read
// back.
func (s *Store) compress(dir, name string, dry bool) (freed int64, err error) {
	path := filepath.Join(dir, name)
	f, err := disk.OpenPlain(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	good, err := jsonl.GoodEnd(f, st.Size())
	if err == nil {
		err = knownFormat(dir)
	}
	if err == nil && good != st.Size() { // tori check mends that, but not once it is compressed
		err = i18n.E("contextstore.log_damaged", name, filepath.Base(dir))
	}
	if err != nil || dry {
		return st.Size(), err
	}
	err = s.FS.Write(path+".gz", func(w io.Writer) error {
		z := gzip.NewWriter(w)
		_, err := io.Copy(z, f)
		return errors.Join(err, z.Close())
	})
	if err != nil {
		return 0, err
	}
	small, err := disk.Stat(path + ".gz")
	if err != nil {
		return 0, err
	}
	if n, err := unpacked(path+".gz", io.Discard); err != nil || n != st.Size() {
		return 0, errors.Join(fmt.Errorf("%s.gz holds %d bytes of %d", path, n, st.Size()), err, s.FS.Remove(path+".gz"))
	}
	if err := s.FS.Remove(path); err != nil {
		return 0, err
	}
	return st.Size() - small.Size(), s.FS.SyncDir(filepath.Dir(path))
}

// unpacked writes what a compressed file holds, and returns how much that is.
func unpacked(path string, to io.Writer) (n int64, err error) {
	f, err := disk.OpenPlain(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	z, err := gzip.NewReader(f)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	n, err = io.Copy(to, z) //nolint:gosec // what this program compressed
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return n, err
}

// unzipped is a compressed log as a file without a name, for who reads it at any place. The caller
// closes it.
func unzipped(path string) (*os.File, error) {
	f, err := os.CreateTemp("", "tori-log-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = unpacked(path, f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Slimmed reports whether retention removed the messages and tools of a run.
func Slimmed(dir string) bool {
	return disk.Exists(filepath.Join(dir, slimmedFile))
}

// removeHalves removes what a cut left of runs that were being removed.
func (s *Store) removeHalves(ctx context.Context) error {
	half, err := filepath.Glob(filepath.Join(escapeGlob(s.BaseDir), RemovedPrefix+"*"))
	for _, dir := range half {
		err = errors.Join(err, s.removeHalf(ctx, dir))
	}
	return err
}

// removeHalf removes a directory of a run that is being removed: what is in it first, which makes
// room, then the row. While there is a row the directory stays, for the next time.
func (s *Store) removeHalf(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, s.FS.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		return err
	}
	uuid := strings.TrimPrefix(filepath.Base(dir), RemovedPrefix)
	s.textsChanged(uuid)
	if err := s.index.Drop(context.WithoutCancel(ctx), uuid); err != nil {
		s.tell(err)
		return nil
	}
	return s.FS.RemoveAll(dir)
}

// sizeOf is how many bytes the files at and below a path have; what goes meanwhile counts not.
func sizeOf(path string) (n int64, err error) {
	if _, err := disk.Lstat(path); err != nil {
		return 0, err
	}
	err = disk.Walk(path, func(_ string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if st, err := d.Info(); err == nil {
			n += st.Size()
		}
		return nil
	})
	return n, err
}
