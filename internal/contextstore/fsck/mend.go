package fsck

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
)

// rounds bounds how often a context is looked at again after something in it
// was mended: what was hidden by one fault shows then.
const rounds = 6

// errChanged says that somebody else was faster; the next check sees the rest.
var errChanged = errors.New("changed by another process meanwhile")

// ownLock is the lock of a context under repair.
type ownLock struct {
	drop bool // .lock is a leftover, or was made for the repair alone
}

// repair takes a context's lock, without waiting, and mends what it can. It
// returns the last look at it, with what was mended before; nil where somebody
// else has just taken it.
func (c *checker) repair(i *inspection) *inspection {
	path := filepath.Join(i.dir, contextstore.LockFile)
	st, missing := disk.Lstat(path)
	if missing == nil && !st.Mode().IsRegular() {
		return i
	}
	release, err := contextstore.Acquire(i.dir, c.now())
	if errors.Is(err, filelock.ErrLocked) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		i.failed(err)
		return i
	}
	defer release()
	own := &ownLock{drop: missing != nil}
	i = c.mendAll(i, own)
	if own.drop {
		if err := c.fs.Remove(filepath.Join(i.dir, contextstore.LockFile)); err != nil {
			i.failed(err)
		}
	}
	return i
}

// mendAll mends and looks again until there is nothing more to mend.
func (c *checker) mendAll(i *inspection, own *ownLock) *inspection {
	var mended []*Finding
	for range rounds {
		i = c.inspect(filepath.Base(filepath.Dir(i.dir)), i.uuid, own)
		n := len(mended)
		for _, f := range i.found {
			if f.mend == nil || c.ctx.Err() != nil {
				continue
			}
			if f.Err = f.mend(); f.Err == nil {
				f.Mended = true
				mended = append(mended, f)
			}
		}
		if _, gone := disk.Lstat(i.dir); gone != nil || len(mended) == n {
			break
		}
	}
	left := slices.DeleteFunc(i.found, func(f *Finding) bool { return f.Mended })
	i.found = slices.Concat(mended, left)
	return i
}

// failed says why nothing was mended.
func (i *inspection) failed(err error) {
	for _, f := range i.found {
		if f.mend != nil {
			f.Err, f.Mended = err, false
		}
	}
}

// lockState keeps other processes from changing the context's state.json until
// unlock is called.
func (i *inspection) lockState() (unlock func(), err error) {
	return contextstore.LockState(i.c.ctx, i.dir, i.c.opt.StateLockTimeout)
}

// changeState replaces state.json by a changed one, durably.
func (i *inspection) changeState(change func(*contextstore.State)) error {
	unlock, err := i.lockState()
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(i.dir, contextstore.StateFile)
	old, err := disk.Read(path, disk.MaxWhole)
	if err != nil {
		return err
	}
	if st, err := disk.Lstat(path); err != nil || !disk.SameFile(st, i.rawState) || st.ModTime() != i.rawState.ModTime() {
		return fmt.Errorf("%s: %w", contextstore.StateFile, errChanged)
	}
	s := i.state
	s.Files = maps.Clone(s.Files)
	change(&s)
	return i.putState(s, old)
}

// putState writes state.json. Fields of the old one that this program does not
// know are kept.
func (i *inspection) putState(s contextstore.State, old []byte) error {
	b, err := jsonl.Append(nil, s)
	if err != nil {
		return err
	}
	if kept, err := jsonl.Keep(b, old); err == nil {
		kept = append(kept, '\n')
		b = kept
	}
	path := filepath.Join(i.dir, contextstore.StateFile)
	if err := i.c.fs.Replace(path, b, true); err != nil {
		return err
	}
	i.state = s
	i.rawState, err = disk.Lstat(path)
	return err
}

// rebuildState writes a state.json that can be read again; what stood there is
// kept beside it.
func (i *inspection) rebuildState() error {
	unlock, err := i.lockState()
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(i.dir, contextstore.StateFile)
	st, err := disk.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return i.stateErr
	default:
		old, err := disk.OpenPlain(path)
		if err != nil {
			return err
		}
		err = jsonl.SetAside(i.c.fs, path+".cut", old)
		if err := errors.Join(err, old.Close()); err != nil {
			return err
		}
	}
	s, _ := i.rebuilt()
	for name := range s.Files {
		if err := i.syncLog(name); err != nil {
			return err
		}
	}
	return i.putState(s, nil)
}

// openLog opens a log to mend it, if it is as it was when it was looked at.
func (i *inspection) openLog(l *logCheck) (*disk.File, error) {
	f, err := i.c.fs.OpenAppend(filepath.Join(i.dir, l.name))
	if err != nil {
		return nil, err
	}
	if f.Size() != l.size {
		return nil, errors.Join(fmt.Errorf("%s: %w", l.name, errChanged), f.Close())
	}
	return f, nil
}

// mendEnd makes a log end with its last good line, durably; what is cut off is kept
// in *.cut.
func (i *inspection) mendEnd(l *logCheck) error {
	f, err := i.openLog(l)
	if err != nil {
		return err
	}
	err = jsonl.RepairEnd(i.c.fs, filepath.Join(i.dir, l.name), f, l.good)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncLog makes a log durable, so that a checkpoint may rely on it.
func (i *inspection) syncLog(name string) error {
	if i.logs[name].missing || i.logs[name].gz {
		return nil
	}
	f, err := i.c.fs.OpenAppend(filepath.Join(i.dir, name))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// finishTransition does what was left of a transition that was committed: move,
// row, phase (PROTOCOL "End, pause, wait" 3–6).
func (i *inspection) finishTransition() error {
	want := contextstore.DirOf(i.state.TaskStatus)
	to := filepath.Join(i.c.base, want, i.uuid)
	if i.dir != to {
		if _, err := disk.Lstat(to); err == nil {
			return fmt.Errorf("%s is there already", to)
		}
		if err := i.c.fs.Rename(i.dir, to); err != nil {
			return err
		}
		i.dir = to
	}
	if i.c.rows != nil {
		// A row that cannot be written is found by the next look.
		_ = i.c.rows.put(i.c.ctx, i.meta, i.state)
	}
	if want != contextstore.DirRunning {
		i.own.drop = true
	}
	if i.state.Phase == "" {
		return nil
	}
	return i.changeState(func(s *contextstore.State) { s.Phase = "" })
}

// removeUnder removes a leftover file of the context.
func (i *inspection) removeUnder(name string) error {
	unlock, err := i.lockState() // whose holder may be writing it
	if err != nil {
		return err
	}
	defer unlock()
	return i.c.fs.Remove(filepath.Join(i.dir, name))
}
