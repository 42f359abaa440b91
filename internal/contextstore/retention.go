package contextstore

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/disk"
)

// Retention says for how long ended runs keep what, counted from their ends (store-v2 §7.2, §8.1;
// spec/README "retention vs inheritance"). 0 is for ever.
type Retention struct {
	Gzip   time.Duration // then messages and tools are compressed
	Slim   time.Duration // then they are removed, with what they refer to
	Delete time.Duration // then all is removed
}

// RetentionStep is what is done with a run.
type RetentionStep string

// The steps.
const (
	StepGzip   RetentionStep = "gzip"
	StepSlim   RetentionStep = "slim"
	StepDelete RetentionStep = "delete"
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
var slimmed = []string{Window, Messages, Tools, "images", "spill"}

// Retain does with each ended run what its age asks for, and tells each of it. A run that is not
// ended, or owes the world something, is left alone. dry only tells. Whenever it is cut short, the
// next call goes on: a run has its messages plain, compressed or not at all, and never half.
// ErrBusy: another process is at it. One run that fails keeps the others from nothing; the error is
// that of the first.
func (s *Store) Retain(ctx context.Context, r Retention, dry bool, each func(Retained)) error {
	release, err := s.Alone("retention")
	if err != nil {
		return err
	}
	defer release()
	if err := s.removeHalf(ctx); err != nil {
		return err
	}
	var failed error
	err = Walk(s.BaseDir, []string{DirCompleted}, func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		uuid := filepath.Base(dir)
		ended, ok := s.Settled(ctx, uuid)
		if !ok {
			return nil
		}
		step := r.step(s.Now().Sub(ended))
		if step == "" {
			return nil
		}
		freed, err := s.retain(ctx, dir, step, dry)
		if errors.Is(err, os.ErrNotExist) { // somebody removed it
			return nil
		}
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s of run %s: %w", step, uuid, err))
			return nil
		}
		if freed > 0 || step == StepDelete {
			each(Retained{uuid, step, freed})
		}
		return nil
	})
	return cmp.Or(err, failed)
}

// step is what a run of an age is due for.
func (r Retention) step(age time.Duration) RetentionStep {
	past := func(d time.Duration) bool { return d > 0 && age >= d }
	switch {
	case past(r.Delete):
		return StepDelete
	case past(r.Slim):
		return StepSlim
	case past(r.Gzip):
		return StepGzip
	}
	return ""
}

func (s *Store) retain(ctx context.Context, dir string, step RetentionStep, dry bool) (freed int64, err error) {
	switch step {
	case StepDelete:
		if freed, err = sizeOf(dir); err != nil || dry {
			return freed, err
		}
		// Its name goes first: what a cut leaves of it is no run.
		gone := filepath.Join(s.BaseDir, RemovedPrefix+filepath.Base(dir))
		if err := s.FS.Rename(dir, gone); err != nil {
			return 0, err
		}
		s.tell(s.index.Drop(ctx, filepath.Base(dir)))
		return freed, s.FS.RemoveAll(gone)
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
		if len(there) == 0 || dry {
			return freed, nil
		}
		if err := s.FS.Replace(filepath.Join(dir, slimmedFile), fmt.Appendf(nil, "{\"slimmed_at\":%q}\n", s.now().String()), !s.NoSync); err != nil {
			return 0, err
		}
		for _, path := range there {
			if err := s.FS.RemoveAll(path); err != nil {
				return freed, err
			}
		}
		return freed, s.FS.SyncDir(dir)
	}
	for _, name := range []string{Messages, Tools} {
		n, err := s.compress(filepath.Join(dir, name), dry)
		if freed += n; err != nil {
			return freed, err
		}
	}
	return freed, nil
}

// RemovedPrefix begins the name, in the base directory, of what is being removed: a run's, or what a restore left.
const RemovedPrefix = ".removed-"

// compress puts a compressed form in the place of a file, once that is on the disk and was read
// back.
func (s *Store) compress(path string, dry bool) (freed int64, err error) {
	f, err := disk.OpenPlain(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	st, err := f.Stat()
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
	small, err := os.Stat(path + ".gz")
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
	_, err := os.Lstat(filepath.Join(dir, slimmedFile))
	return err == nil
}

// removeHalf removes what a cut left of runs that were being removed.
func (s *Store) removeHalf(ctx context.Context) error {
	half, err := filepath.Glob(filepath.Join(s.BaseDir, RemovedPrefix+"*"))
	for _, dir := range half {
		s.tell(s.index.Drop(ctx, strings.TrimPrefix(filepath.Base(dir), RemovedPrefix)))
		err = errors.Join(err, s.FS.RemoveAll(dir))
	}
	return err
}

// sizeOf is how many bytes the files at and below a path have; what goes meanwhile counts not.
func sizeOf(path string) (n int64, err error) {
	if _, err := os.Lstat(path); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
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
